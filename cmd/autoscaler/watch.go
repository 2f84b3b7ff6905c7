package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// The pauses of -w: after each frame, and before the client reconnects to a stream that ended.
const (
	framePause     = 500 * time.Millisecond
	reconnectPause = time.Second
)

// Flags are the flags of commands that show what a server knows about one RayCluster or all of them.
type watchFlags struct {
	Server cli.ServerFlags
	Output string
	Watch  bool
}

// AddTo adds the flags to a command, which must have its RunE. The formats are those of -o, the default first.
func (f *watchFlags) AddTo(cmd *cobra.Command, formats ...string) {
	f.Server.AddTo(cmd)
	cli.Output(cmd.Flags(), &f.Output, formats...)
	cmd.Flags().BoolVarP(&f.Watch, "watch", "w", false,
		"show the output again whenever something changes; in a file or pipe, only what changed")
	f.Server.CompleteCluster(cmd)
}

// Show draws once, or with -w whenever something changes about the cluster (about the fleet if the key is zero), until
// the context of the command ends.
func (f *watchFlags) Show(cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey, draw drawFunc) error {
	if !f.Watch {
		return draw(cmd.Context(), cmd.OutOrStdout())
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- follow(ctx, cmd.ErrOrStderr(), api, key, changed) }()
	frames := frames{
		out:     cmd.OutOrStdout(),
		clear:   printer.IsTerminal(cmd.OutOrStdout()),
		between: betweenFrames[f.Output],
	}
	for {
		select {
		case <-changed:
		case err := <-ended:
			if cmd.Context().Err() != nil {
				return nil // the user stopped watching
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
			fmt.Fprintln(cmd.ErrOrStderr(), printer.Printable(err.Error()))
		}
		select {
		case <-ctx.Done():
		case <-time.After(framePause):
		}
	}
}

// follow sends to changed whenever something changes, until ctx ends. It fails only if the first stream does not begin;
// later it reconnects.
func follow(
	ctx context.Context,
	errOut io.Writer,
	api *apiv1.Client,
	key nodepool.ClusterKey,
	changed chan<- struct{},
) error {
	begun := false
	for {
		err := api.Follow(ctx, key, func(apiv1.Event) error {
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
		if !errors.Is(err, apiv1.ErrStreamEnded) {
			fmt.Fprintln(errOut, printer.Printable(err.Error()))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(reconnectPause):
		}
	}
}

// drawFunc fetches the answer and writes it.
type drawFunc func(ctx context.Context, out io.Writer) error

// betweenFrames separates two frames in a file or pipe: documents as programs expect it, text with an empty line.
var betweenFrames = map[string]string{
	"json":  "",
	"yaml":  "---\n",
	"table": emptyLine,
	"text":  emptyLine,
	"wide":  emptyLine,
}

const emptyLine = "\n"

// frames overwrites each frame with the next on a terminal. Elsewhere it appends them, and omits those without a
// change.
type frames struct {
	out          io.Writer
	clear, begun bool
	between      string
	// last is the last frame without volatile text.
	last string
}

// clearScreen moves a terminal's cursor home and clears the screen.
const clearScreen = "\x1b[H\x1b[2J\x1b[3J"

func (f *frames) draw(ctx context.Context, draw drawFunc) error {
	var text bytes.Buffer
	if err := draw(ctx, &text); err != nil {
		return err
	}
	lasting := printer.Volatile.ReplaceAllString(text.String(), "")
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

// noteStaleness writes a note to standard error if Ray's state cannot be read: an answer about a request or about
// demand is as old as the last reading.
func noteStaleness(cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey) {
	cluster, err := api.Status(cmd.Context(), key)
	if err != nil {
		return // a user with the right to request may lack the right to read the status
	}
	writeNote(cmd, printer.NotRead(cluster))
}

// writeNote writes a note, if there is one, to standard error: programs read standard output.
func writeNote(cmd *cobra.Command, note string) {
	if note != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: note: %s\n", cmd.Root().Name(), printer.Printable(note))
	}
}
