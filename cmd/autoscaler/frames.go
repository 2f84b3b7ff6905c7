package main

import (
	"bytes"
	"context"
	"io"

	"heliostat.dev/heliostat/internal/cli/printer"
)

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
