package printer

import (
	"fmt"
	"strconv"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

// writeArrivals says how far starting workers have come: a line for those of a group and stage that the same message is
// about, with the earliest of their times since and the latest of their expected times.
func writeArrivals(p *Page, c apiv1.Cluster, as Look, now time.Time) {
	if len(c.Arrivals) == 0 {
		return
	}
	t := Table{
		Look: as,
		Columns: []Column{Name("STARTING"), Number("PODS"), Text("STAGE"),
			Number("SINCE"), Prose("READY")},
	}
	for _, alike := range alikeArrivals(c.Arrivals) {
		t.Add(arrivalCells(alike, now)...)
	}
	p.Line("", "")
	t.Write(p)
	starting := 0
	for _, g := range c.Groups {
		starting += g.Starting
	}
	if more := starting - len(c.Arrivals); more > 0 {
		p.Line("", fmt.Sprintf("and %d more", more))
	}
}

// alikeArrivals returns the workers that share a line, in their order. A node autoscaler does not report on every pod,
// so pods with and without its message alternate.
func alikeArrivals(all []apiv1.Arrival) (lines [][]apiv1.Arrival) {
	type line struct{ group, stage, message string }
	at := map[line]int{}
	for _, a := range all {
		key := line{a.Group, a.Stage, a.Message}
		i, known := at[key]
		if !known {
			i, at[key] = len(lines), len(lines)
			lines = append(lines, nil)
		}
		lines[i] = append(lines[i], a)
	}
	return lines
}

func arrivalCells(alike []apiv1.Arrival, now time.Time) []Cell {
	since, last := unknownCell, apiv1.Arrival{}
	if first := alike[0].Since; first != nil { // they are sorted by it
		since = planner.Span(now.Sub(*first).Seconds())
	}
	for _, a := range alike {
		if a.ExpectedAt != nil && a.LateAt != nil && (last.ExpectedAt == nil || a.ExpectedAt.After(*last.ExpectedAt)) {
			last = a
		}
	}
	ready := Cell{Text: "not known yet"}
	if last.ExpectedAt != nil {
		ready.Text = planner.Expected(*last.ExpectedAt, *last.LateAt, now)
		if !last.LateAt.After(now) {
			ready.Style = Warn
		}
	}
	if why := alike[0].Message; why != "" {
		ready.Text += ": " + why
	}
	return []Cell{{Text: alike[0].Group}, {Text: strconv.Itoa(len(alike))}, {Text: alike[0].Stage},
		{Text: since}, ready}
}
