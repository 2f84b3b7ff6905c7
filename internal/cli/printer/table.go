package printer

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Cell is one field of a table.
type Cell struct {
	Text  string
	Style Style
}

// Table is text in columns that together take at most PageWidth, unless it is wide.
type Table struct {
	Columns []Column
	rows    [][]Cell
	Look
}

// newTable returns a table of the page with columns as columnOf reads them.
func newTable(p *Page, columns ...string) *Table {
	t := &Table{Look: p.Look}
	for _, declared := range columns {
		t.Columns = append(t.Columns, columnOf(declared))
	}
	return t
}

// columnGap separates columns; leastColumn and leastProse are the minimum widths. Text below a row is indented by
// noteIndent.
const (
	columnGap   = 2
	leastColumn = 8
	leastProse  = 24
	leastNote   = 40
	noteIndent  = "    "
)

// Add appends one row, with a Cell, text or number for each column.
func (t *Table) Add(fields ...any) {
	row := make([]Cell, len(fields))
	for i, field := range fields {
		cell, styled := field.(Cell)
		if !styled {
			cell.Text = fmt.Sprint(field)
		}
		row[i] = Cell{Printable(cell.Text), cell.Style}
	}
	t.rows = append(t.rows, row)
}

// WriteApart appends an empty line and the table's lines to the page, if there are rows.
func (t *Table) WriteApart(p *Page) {
	if len(t.rows) > 0 {
		p.WriteString("\n")
		t.Write(p)
	}
}

// Write appends the table's lines to the page.
func (t *Table) Write(p *Page) {
	shown := t.shown()
	notes := shown.notesBelow()
	widths := shown.widths()
	titles := make([]Cell, len(shown.Columns))
	for i, c := range shown.Columns {
		titles[i] = Cell{c.title, strong}
	}
	shown.line(p, widths, titles)
	for i, row := range shown.rows {
		shown.line(p, widths, row)
		if notes != nil {
			shown.note(p, notes[i])
		}
	}
}

// notesBelow removes the last column from the table if it is a note with too little room, and returns its cells.
func (t *Table) notesBelow() []Cell {
	last := len(t.Columns) - 1
	if t.Wide || !t.Columns[last].is(kindNote) {
		return nil
	}
	natural := t.natural()
	if room := PageWidth - total(natural[:last]) - columnGap*last; room >= min(leastNote, natural[last]) {
		return nil
	}
	notes := make([]Cell, len(t.rows))
	for i, row := range t.rows {
		notes[i], t.rows[i] = row[last], row[:last]
	}
	t.Columns = t.Columns[:last]
	return notes
}

// note writes text below a row.
func (t *Table) note(p *Page, c Cell) {
	for rest := c.Text; rest != ""; {
		var head string
		head, rest = breakLine(rest, PageWidth-len(noteIndent))
		p.WriteString(noteIndent + t.paint(head, c.Style) + "\n")
	}
}

// shown returns the table without the columns for -o wide, unless it is wide.
func (t *Table) shown() *Table {
	if t.Wide {
		return t
	}
	narrow := &Table{Look: t.Look, rows: make([][]Cell, len(t.rows))}
	for i, c := range t.Columns {
		if c.is(kindWide) {
			continue
		}
		narrow.Columns = append(narrow.Columns, c)
		for r, row := range t.rows {
			narrow.rows[r] = append(narrow.rows[r], row[i])
		}
	}
	return narrow
}

// natural returns the widths of the longest cells.
func (t *Table) natural() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(c.title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	return widths
}

// widths returns the widths of the longest cells, or less if they do not fit: prose shrinks first, then the widest
// column.
func (t *Table) widths() []int {
	widths := t.natural()
	for !t.Wide && total(widths)+columnGap*(len(widths)-1) > PageWidth {
		widest := t.widest(widths, leastProse, func(c Column) bool { return c.is(kindProse | kindNote) })
		if widest < 0 {
			widest = t.widest(widths, leastColumn, func(Column) bool { return true })
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// widest returns the widest column that may shrink, or -1.
func (t *Table) widest(widths []int, least int, may func(Column) bool) int {
	widest := -1
	for i, w := range widths {
		if w > least && may(t.Columns[i]) && (widest < 0 || w > widths[widest]) {
			widest = i
		}
	}
	return widest
}

func total(widths []int) (sum int) {
	for _, w := range widths {
		sum += w
	}
	return sum
}

// line writes a row, in as many lines as its longest prose needs.
func (t *Table) line(p *Page, widths []int, row []Cell) {
	rest := make([]string, len(row))
	for i, c := range row {
		rest[i] = c.Text
	}
	for first := true; first || slices.ContainsFunc(rest, func(text string) bool { return text != "" }); first = false {
		var b strings.Builder
		for i, c := range row {
			var head string
			if head, rest[i] = rest[i], ""; t.Columns[i].is(kindProse|kindNote) && !t.Wide {
				head, rest[i] = breakLine(head, widths[i])
			}
			last := i == len(row)-1
			b.WriteString(t.paint(fit(head, widths[i], t.Columns[i].kind, last), c.Style))
			if !last {
				b.WriteString(strings.Repeat(" ", columnGap))
			}
		}
		p.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
}

// fit truncates or pads a text to a width; it does not pad the last column.
func fit(text string, width int, kind columnKind, last bool) string {
	runes := []rune(text)
	switch missing := width - len(runes); {
	case missing < 0 && kind&kindName != 0:
		tail := (width - 1) / 2
		return string(runes[:width-1-tail]) + "…" + string(runes[len(runes)-tail:])
	case missing < 0:
		return string(runes[:width-1]) + "…"
	case kind&kindNumber != 0:
		return strings.Repeat(" ", missing) + text
	case last:
		return text
	default:
		return text + strings.Repeat(" ", missing)
	}
}

func (t *Table) paint(text string, s Style) string {
	if !t.color || s == Plain || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// columnKind says how a column is written if its cells do not fit.
type columnKind uint8

// The kinds of columns; any of them can be combined with kindWide.
const (
	// kindText columns are truncated at the end.
	kindText columnKind = 0
	// kindName columns are truncated in the middle: names of nodes and pods begin alike and differ at the end.
	kindName columnKind = 1 << iota
	// kindNumber columns are aligned to the right.
	kindNumber
	// kindProse columns wrap and are never truncated.
	kindProse
	// kindNote, for the last column only, is prose that moves below its row if less than leastNote is left for it.
	kindNote
	// kindWide columns appear only with -o wide.
	kindWide
)

// Column is the head of a column: its title, and how its cells are truncated or aligned.
type Column struct {
	title string
	kind  columnKind
}

func (c Column) is(kind columnKind) bool { return c.kind&kind != 0 }

// columnOf reads a column as tables declare it: its title, after a mark for its kind, and before * if it appears only
// with -o wide. Without a mark it is kindText.
func columnOf(declared string) Column {
	title, wide := strings.CutSuffix(declared, "*")
	kind := map[byte]columnKind{'@': kindName, '#': kindNumber, '~': kindProse, '!': kindNote}[title[0]]
	if kind != kindText {
		title = title[1:]
	}
	if wide {
		kind |= kindWide
	}
	return Column{title, kind}
}

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
	// Now is the clock that ages are counted to.
	Now func() time.Time
}

// LookOf returns the Look for out and the value of -o.
func LookOf(out io.Writer, output string) Look {
	return Look{color: colored(out), Wide: output == "wide", Now: time.Now}
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
