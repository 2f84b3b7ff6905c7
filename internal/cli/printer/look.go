package printer

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Style is the highlighting of a cell on a terminal.
type Style string

// The styles, as codes of ECMA-48.
const (
	Plain  Style = ""
	Good   Style = "32"
	Warn   Style = "33"
	Bad    Style = "31"
	strong Style = "1"
)

// Look configures how a table is written. The zero Look has no colors and fits a page.
type Look struct {
	color bool
	// Wide tables may exceed a page, so that no cell is truncated and no column omitted.
	Wide bool
	// changes is nil unless several tables form one.
	changes *rowChanges
}

// Continued returns a Look that makes consecutive tables one: each adds the rows that changed.
func (l Look) Continued() Look {
	l.changes = &rowChanges{}
	return l
}

// Continues reports whether several tables form one.
func (l Look) Continues() bool { return l.changes != nil }

// Begun reports whether an earlier table is continued.
func (l Look) Begun() bool { return l.changes.begun() }

// LookOf returns the Look for out and the value of -o.
func LookOf(out io.Writer, output string) Look {
	return Look{color: colored(out), Wide: output == "wide"}
}

// IsTerminal reports whether out is a terminal, so that a person is reading.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor fits
}

// colored reports whether to use colors: on a terminal, unless NO_COLOR (https://no-color.org) or TERM disables them.
func colored(out io.Writer) bool {
	return IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
