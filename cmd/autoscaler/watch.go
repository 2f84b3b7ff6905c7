package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/httpapi"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Pauses of -w: between two pictures, and before a stream that ended is begun anew.
const (
	watchPause = 500 * time.Millisecond
	watchRetry = time.Second
)

// watchUsage describes -w of every command that has one.
const watchUsage = "show it again whenever something changes"

// watchFlags are those of commands that show what a server knows, of all RayClusters or of one.
type watchFlags struct {
	server serverFlags
	output string
	watch  bool
}

func (f *watchFlags) addTo(cmd *cobra.Command) {
	f.server.addTo(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", outputUsage)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, watchUsage)
	f.server.completeCluster(cmd)
}

// picture writes what is there now.
type picture func(ctx context.Context, out io.Writer) error

// shown writes one picture, or with watch one whenever something changes about the cluster (or the fleet where the key is zero),
// until the caller ends it.
func shown(cmd *cobra.Command, watch bool, client *httpapi.Client, key nodepool.ClusterKey, draw picture) error {
	if !watch {
		return draw(cmd.Context(), cmd.OutOrStdout())
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- followed(ctx, cmd.ErrOrStderr(), client, key, changed) }()
	frames := frames{out: cmd.OutOrStdout(), clear: isTerminal(cmd.OutOrStdout())}
	for {
		select {
		case <-changed:
		case err := <-ended:
			if cmd.Context().Err() != nil {
				return nil // the caller has seen enough
			}
			return err
		}
		err := frames.draw(ctx, draw)
		switch {
		case cmd.Context().Err() != nil:
			return nil
		case err != nil && !frames.begun:
			return err
		case err != nil:
			fmt.Fprintln(cmd.ErrOrStderr(), printable(err.Error()))
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}

// followed lets changed hold a token whenever something changed, until ctx ends. Only a first stream that cannot be had is an error:
// later ones are begun anew.
func followed(ctx context.Context, errOut io.Writer, client *httpapi.Client, key nodepool.ClusterKey, changed chan<- struct{}) error {
	begun := false
	for {
		err := client.Follow(ctx, key, func(httpapi.Event) error {
			begun = true
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
		if ctx.Err() != nil || !begun {
			return err
		}
		if !errors.Is(err, httpapi.ErrStreamEnded) {
			fmt.Fprintln(errOut, printable(err.Error()))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchRetry):
		}
	}
}

// frames writes pictures one over the other on a terminal, and one after the other elsewhere.
type frames struct {
	out          io.Writer
	clear, begun bool
}

// clearScreen moves a terminal's cursor home and clears what is below.
const clearScreen = "\x1b[H\x1b[2J\x1b[3J"

func (f *frames) draw(ctx context.Context, draw picture) error {
	var text bytes.Buffer
	if f.clear {
		text.WriteString(clearScreen)
	} else if f.begun {
		text.WriteString("---\n")
	}
	if err := draw(ctx, &text); err != nil {
		return err
	}
	f.begun = true
	_, err := f.out.Write(text.Bytes())
	return err
}
