package main

import (
	"fmt"
	"os"
	"strings"
)

// The lines around the table in a page.
const (
	tableBegins = "<!-- make nightly NAME=matrix writes this table from versions.json -->"
	tableEnds   = "<!-- end of the table -->"
)

// table returns the results as a Markdown table.
func table(results []Result) string {
	columns := []string{"Ray", "KubeRay operator", "Kubernetes"}
	for _, s := range steps {
		columns = append(columns, s.name)
	}
	columns = append(columns, "on")
	var text strings.Builder
	row(&text, columns)
	row(&text, strings.Split(strings.Repeat("---,", len(columns)-1)+"---", ","))
	for _, r := range results {
		cells := []string{r.Ray, r.KubeRay, r.Kubernetes}
		for _, s := range steps {
			cells = append(cells, cell(r, s.name))
		}
		row(&text, append(cells, r.Date))
	}
	return text.String()
}

// row writes a line of the table. A row of dashes has no spaces.
func row(text *strings.Builder, cells []string) {
	if cells[0] == "---" {
		fmt.Fprintf(text, "|%s|\n", strings.Join(cells, "|"))
		return
	}
	fmt.Fprintf(text, "| %s |\n", strings.Join(cells, " | "))
}

// cell says how a step went.
func cell(r Result, name string) string {
	s, ran := r.step(name)
	switch {
	case !ran:
		return "not reached"
	case s.Failed != "":
		return "failed: " + strings.ReplaceAll(s.Failed, "|", `\|`)
	case s.Seconds < 0.1: // what is measured is observed every 50 ms
		return "under 0.1 s"
	}
	return fmt.Sprintf("%.1f s", s.Seconds)
}

// replaced returns a page with another table.
func replaced(page, table string) (string, error) {
	before, rest, begins := strings.Cut(page, tableBegins+"\n")
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return "", fmt.Errorf("no table between %q and %q", tableBegins, tableEnds)
	}
	return before + tableBegins + "\n\n" + table + "\n" + tableEnds + after, nil
}

// renew replaces the table in a page.
func renew(file, table string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("renewing the table: %w", err)
	}
	text, err := replaced(string(page), table)
	if err != nil {
		return fmt.Errorf("renewing the table in %s: %w", file, err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("renewing the table: %w", err)
	}
	return nil
}
