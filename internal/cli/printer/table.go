package printer

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
)

// table is text in aligned columns, as kubectl prints it. An empty cell is unknown or absent, and is written as -.
type table struct {
	columns []string
	rows    [][]string
}

// newTable returns a table. Only -o wide shows a column whose title ends with *.
func newTable(columns ...string) *table { return &table{columns: columns} }

// Add appends one row, with a value for each column.
func (t *table) Add(values ...any) {
	row := make([]string, len(values))
	for i, value := range values {
		row[i] = Printable(fmt.Sprint(value))
	}
	t.rows = append(t.rows, row)
}

// known returns the value of a cell; an unknown one is empty.
func known[T any](value *T) any {
	if value == nil {
		return ""
	}
	return *value
}

// WriteApart appends an empty line and the table's lines to the page, if there are rows.
func (t *table) WriteApart(p *Page) {
	if len(t.rows) > 0 {
		p.WriteString("\n")
		t.Write(p)
	}
}

// Write appends the table's lines to the page.
func (t *table) Write(p *Page) {
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for i, row := range append([][]string{t.columns}, t.rows...) {
		var cells []string
		for c, cell := range row {
			title, wide := strings.CutSuffix(t.columns[c], "*")
			switch {
			case wide && !p.Wide:
			case i == 0:
				cells = append(cells, title)
			default:
				cells = append(cells, cmp.Or(cell, "-"))
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // a page takes all
}
