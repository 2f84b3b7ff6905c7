package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"heliostat.dev/heliostat/internal/planner"
)

// style is how a cell stands out on a terminal.
type style string

// The styles, as codes of ECMA-48.
const (
	plain  style = ""
	good   style = "32"
	doubt  style = "33"
	bad    style = "31"
	strong style = "1"
)

// cell is one field of a table.
type cell struct {
	text  string
	style style
}

func cells(texts ...string) []cell {
	all := make([]cell, len(texts))
	for i, text := range texts {
		all[i].text = text
	}
	return all
}

// columnKind says how a column is written where it is short of room.
type columnKind uint8

// The kinds of columns; a kind and wideOnly go together.
const (
	// asText is cut at its end.
	asText columnKind = 0
	// asName is cut in its middle: names of nodes and pods begin alike, and end in what tells them apart.
	asName columnKind = 1 << iota
	// asNumber is set to the right.
	asNumber
	// asProse goes on in further lines and is never cut.
	asProse
	// asNote, of the last column, is prose that stands below its row where it would have less room than leastNote.
	asNote
	// wideOnly columns are left out but for -o wide.
	wideOnly
)

// column is one of a table.
type column struct {
	title string
	kind  columnKind
}

func (c column) is(kind columnKind) bool { return c.kind&kind != 0 }

// look is how a table is written: with colours, and wider than a page, so that nothing is cut and no column left out.
type look struct {
	colour, wide bool
	// told, where it is not nil, makes of several tables one that goes on.
	told *toldRows
}

// lookOf is how the output that -o names is written to out.
func lookOf(out io.Writer, output string) look {
	return look{colour: coloured(out), wide: output == "wide"}
}

// table is text in columns that together take at most pageWidth, unless it is wide.
type table struct {
	columns []column
	rows    [][]cell
	look
}

// columnGap separates columns; leastColumn and leastProse are how narrow one is made at most. What is below a row is indented by noteIndent.
const (
	columnGap   = 2
	leastColumn = 8
	leastProse  = 24
	leastNote   = 40
	noteIndent  = "    "
)

// add appends one row, with a cell for each column.
func (t *table) add(row ...cell) {
	for i := range row {
		row[i].text = printable(row[i].text)
	}
	t.rows = append(t.rows, row)
}

// write appends the table's lines to the page.
func (t *table) write(p *page) {
	goesOn := t.told.begun()
	if t.told != nil {
		t.told.news(t)
	}
	shown := t.shown()
	notes := shown.notesBelow()
	widths := shown.widths()
	if t.told != nil {
		widths = t.told.widen(widths)
	}
	titles := make([]cell, len(shown.columns))
	for i, c := range shown.columns {
		titles[i] = cell{c.title, strong}
	}
	if !goesOn {
		shown.line(p, widths, titles)
	}
	for i, row := range shown.rows {
		shown.line(p, widths, row)
		if notes != nil {
			shown.note(p, notes[i])
		}
	}
}

// notesBelow takes the last column out of the table where it is a note that has too little room beside the others, and returns its cells.
func (t *table) notesBelow() []cell {
	last := len(t.columns) - 1
	if t.wide || !t.columns[last].is(asNote) {
		return nil
	}
	natural := t.natural()
	if room := pageWidth - total(natural[:last]) - columnGap*last; room >= min(leastNote, natural[last]) {
		return nil
	}
	notes := make([]cell, len(t.rows))
	for i, row := range t.rows {
		notes[i], t.rows[i] = row[last], row[:last]
	}
	t.columns = t.columns[:last]
	return notes
}

// note writes what stands below a row.
func (t *table) note(p *page, c cell) {
	for rest := c.text; rest != ""; {
		var head string
		head, rest = breakLine(rest, pageWidth-len(noteIndent))
		p.WriteString(noteIndent + t.paint(head, c.style) + "\n")
	}
}

// shown is the table without the columns that it is not wide enough for.
func (t *table) shown() *table {
	if t.wide {
		return t
	}
	narrow := &table{look: t.look, rows: make([][]cell, len(t.rows))}
	for i, c := range t.columns {
		if c.is(wideOnly) {
			continue
		}
		narrow.columns = append(narrow.columns, c)
		for r, row := range t.rows {
			narrow.rows[r] = append(narrow.rows[r], row[i])
		}
	}
	return narrow
}

// natural are the widths of the longest cells.
func (t *table) natural() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = utf8.RuneCountInString(c.title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	return widths
}

// widths are those of the longest cells, or less where they do not fit: prose gives way first, then the widest column.
func (t *table) widths() []int {
	widths := t.natural()
	for !t.wide && total(widths)+columnGap*(len(widths)-1) > pageWidth {
		widest := t.widest(widths, leastProse, func(c column) bool { return c.is(asProse | asNote) })
		if widest < 0 {
			widest = t.widest(widths, leastColumn, func(column) bool { return true })
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// widest is the widest column of those that may be made narrower than they are, or -1.
func (t *table) widest(widths []int, least int, may func(column) bool) int {
	widest := -1
	for i, w := range widths {
		if w > least && may(t.columns[i]) && (widest < 0 || w > widths[widest]) {
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

// line writes a row, in as many lines as its longest prose takes.
func (t *table) line(p *page, widths []int, row []cell) {
	rest := make([]string, len(row))
	for i, c := range row {
		rest[i] = c.text
	}
	for first := true; first || slices.ContainsFunc(rest, func(text string) bool { return text != "" }); first = false {
		var b strings.Builder
		for i, c := range row {
			var head string
			if head, rest[i] = rest[i], ""; t.columns[i].is(asProse|asNote) && !t.wide {
				head, rest[i] = breakLine(head, widths[i])
			}
			last := i == len(row)-1
			b.WriteString(t.paint(fit(head, widths[i], t.columns[i].kind, last), c.style))
			if !last {
				b.WriteString(strings.Repeat(" ", columnGap))
			}
		}
		p.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
}

// fit cuts or fills a text to a width; nothing is filled up behind the last column.
func fit(text string, width int, kind columnKind, last bool) string {
	runes := []rune(text)
	switch missing := width - len(runes); {
	case missing < 0 && kind&asName != 0:
		tail := (width - 1) / 2
		return string(runes[:width-1-tail]) + "…" + string(runes[len(runes)-tail:])
	case missing < 0:
		return string(runes[:width-1]) + "…"
	case kind&asNumber != 0:
		return strings.Repeat(" ", missing) + text
	case last:
		return text
	default:
		return text + strings.Repeat(" ", missing)
	}
}

func (t *table) paint(text string, s style) string {
	if !t.colour || s == plain || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// isTerminal reports whether a person looks at what is written.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor fits
}

// coloured reports whether colours are of use: on a terminal, unless NO_COLOR (https://no-color.org) or TERM says otherwise.
func coloured(out io.Writer) bool {
	return isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// moment says when something was, and ago how long ago. As in kubectl tables have ages, and whatever describes one thing the time itself.
func moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func ago(at, now time.Time) string { return planner.Span(now.Sub(at).Seconds()) + " ago" }
