package printer

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// rowChanges holds what a continued table has written: the rows by name, without volatile text, and the widths of its
// columns.
type rowChanges struct {
	rows   map[string]string
	widths []int
}

// begun reports whether anything was written before.
func (r *rowChanges) begun() bool { return r != nil && r.rows != nil }

// nameEnd separates the names of a row.
const nameEnd = "\x00"

// keepChanged keeps the rows that are new or have changed, and adds one for each that is gone.
func (r *rowChanges) keepChanged(t *Table) {
	before := r.rows
	r.rows = map[string]string{}
	t.rows = slices.DeleteFunc(t.rows, func(row []Cell) bool {
		var name, text strings.Builder
		for i, c := range row {
			if t.Columns[i].is(kindName) {
				name.WriteString(c.Text + nameEnd)
			} else {
				text.WriteString(Volatile.ReplaceAllString(" "+c.Text, "") + nameEnd)
			}
		}
		last, known := before[name.String()]
		r.rows[name.String()] = text.String()
		return known && last == text.String()
	})
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := r.rows[name]; !stays {
			t.rows = append(t.rows, t.gone(strings.Split(name, nameEnd)))
		}
	}
}

// gone returns a row with the names and, in the first column of text, "gone".
func (t *Table) gone(names []string) []Cell {
	row := make([]Cell, len(t.Columns))
	marked := false
	for i, c := range t.Columns {
		switch {
		case c.is(kindName):
			row[i].Text, names = names[0], names[1:]
		case c.kind == kindText && !marked:
			row[i], marked = Cell{"gone", Warn}, true
		}
	}
	return row
}

// widen makes columns at least as wide as before, so that rows line up.
func (r *rowChanges) widen(widths []int) []int {
	for i := range widths {
		if i < len(r.widths) {
			widths[i] = max(widths[i], r.widths[i])
		}
	}
	r.widths = widths
	return widths
}

// Volatile matches text that changes merely because time passes: durations as planner.Span writes them, times, and
// fields with these.
var Volatile = regexp.MustCompile(`(^|[\s(])\d+(\.\d)?(ms|[smhdy])(\d+[smhd])?\b|\b\d{4}-\d\d-\d\dT[\d:.]+Z|` +
	`"?\b(dataAgeSeconds|cycleSeconds|comparedSeconds|agreement)"?: .*`)
