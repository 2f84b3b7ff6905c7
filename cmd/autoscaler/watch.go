package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/connect"
	"heliostat.dev/heliostat/internal/cli/table"
	"heliostat.dev/heliostat/internal/httpapi/client"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Pauses of -w: between two pictures, and before a stream that ended is begun anew.
const (
	watchPause = 500 * time.Millisecond
	watchRetry = time.Second
)

// watchFlags are those of commands that show what a server knows, of all RayClusters or of one.
type watchFlags struct {
	server connect.ServerFlags
	output string
	watch  bool
}

func (f *watchFlags) addTo(cmd *cobra.Command) {
	f.server.AddTo(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", cli.OutputUsage)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "show it again whenever something changes; into a file or pipe, only what changed")
	f.server.CompleteCluster(cmd)
}

// addBesideFileTo adds them to a command that reads a file too, which is not watched.
func (f *watchFlags) addBesideFileTo(cmd *cobra.Command) {
	f.addTo(cmd)
	watch := cmd.Flags().Lookup("watch")
	watch.Usage = "with a RayCluster: " + watch.Usage
}

// errWatchedFile refuses -w beside a file.
var errWatchedFile = errors.New("--watch: want a RayCluster with it; a snapshot stays as it is")

// look is how the output is written. A list that is watched into a file or pipe is one table that goes on, as kubectl's is.
func (f *watchFlags) look(out io.Writer, list bool) table.Look {
	as := table.LookOf(out, f.output)
	if f.watch && list && betweenFrames[f.output] == emptyLine && !table.IsTerminal(out) {
		as = as.Continued()
	}
	return as
}

// picture writes what is there now.
type picture func(ctx context.Context, out io.Writer) error

// shown writes one picture, or with -w one whenever something changes about the cluster (or the fleet where the key is zero), until the caller ends it.
func (f *watchFlags) shown(cmd *cobra.Command, as table.Look, api *client.Client, key nodepool.ClusterKey, draw picture) error {
	if !f.watch {
		return draw(cmd.Context(), cmd.OutOrStdout())
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- followed(ctx, cmd.ErrOrStderr(), api, key, changed) }()
	frames := frames{out: cmd.OutOrStdout(), clear: table.IsTerminal(cmd.OutOrStdout()), between: betweenFrames[f.output]}
	if as.Continues() {
		frames.between = "" // one table
	}
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
			fmt.Fprintln(cmd.ErrOrStderr(), table.Printable(err.Error()))
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}

// followed lets changed hold a token whenever something changed, until ctx ends. Only a first stream that cannot be had is an error:
// later ones are begun anew.
func followed(ctx context.Context, errOut io.Writer, api *client.Client, key nodepool.ClusterKey, changed chan<- struct{}) error {
	begun := false
	for {
		err := api.Follow(ctx, key, func(client.Event) error {
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
		if !errors.Is(err, client.ErrStreamEnded) {
			fmt.Fprintln(errOut, table.Printable(err.Error()))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchRetry):
		}
	}
}

// betweenFrames stands between two pictures in a file or pipe: what separates documents, so that programs read one after the other, or an empty line.
var betweenFrames = map[string]string{"json": "", "yaml": "---\n", "table": emptyLine, "text": emptyLine, "wide": emptyLine}

const emptyLine = "\n"

// frames writes pictures one over the other on a terminal. Elsewhere it writes one after the other, and none that tells nothing new.
type frames struct {
	out          io.Writer
	clear, begun bool
	between      string
	// last is the picture before, without what passes.
	last string
}

// clearScreen moves a terminal's cursor home and clears what is below.
const clearScreen = "\x1b[H\x1b[2J\x1b[3J"

func (f *frames) draw(ctx context.Context, draw picture) error {
	var text bytes.Buffer
	if err := draw(ctx, &text); err != nil {
		return err
	}
	lasting := table.Volatile.ReplaceAllString(text.String(), "")
	switch {
	case f.clear:
		text = *bytes.NewBufferString(clearScreen + text.String())
	case f.begun && (lasting == f.last || text.Len() == 0):
		return nil
	case f.begun:
		text = *bytes.NewBufferString(f.between + text.String())
	}
	f.begun, f.last = true, lasting
	_, err := f.out.Write(text.Bytes())
	return err
}
