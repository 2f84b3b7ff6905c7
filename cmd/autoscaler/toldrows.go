package main

import (
	"maps"
	"slices"
	"strings"
)

// toldRows are the rows that a table that goes on has told, by their names and without what passes, and the widths of its columns.
type toldRows struct {
	rows   map[string]string
	widths []int
}

// begun reports whether there is a table that goes on.
func (o *toldRows) begun() bool { return o != nil && o.rows != nil }

// nameEnd separates the names of a row.
const nameEnd = "\x00"

// news leaves those rows in the table that were not told as they are, and one for each that is there no more.
func (o *toldRows) news(t *table) {
	before := o.rows
	o.rows = map[string]string{}
	t.rows = slices.DeleteFunc(t.rows, func(row []cell) bool {
		var name, text strings.Builder
		for i, c := range row {
			if t.columns[i].is(asName) {
				name.WriteString(c.text + nameEnd)
			} else {
				text.WriteString(passing.ReplaceAllString(" "+c.text, "") + nameEnd)
			}
		}
		last, known := before[name.String()]
		o.rows[name.String()] = text.String()
		return known && last == text.String()
	})
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := o.rows[name]; !stays {
			t.rows = append(t.rows, t.gone(strings.Split(name, nameEnd)))
		}
	}
}

// gone is a row that says of names alone that they are gone, in the first column of text.
func (t *table) gone(names []string) []cell {
	row := make([]cell, len(t.columns))
	said := false
	for i, c := range t.columns {
		switch {
		case c.is(asName):
			row[i].text, names = names[0], names[1:]
		case c.kind == asText && !said:
			row[i], said = cell{"gone", doubt}, true
		}
	}
	return row
}

// widen makes columns as wide as they were, so that rows stand below those before them.
func (o *toldRows) widen(widths []int) []int {
	for i := range widths {
		if i < len(o.widths) {
			widths[i] = max(widths[i], o.widths[i])
		}
	}
	o.widths = widths
	return widths
}
