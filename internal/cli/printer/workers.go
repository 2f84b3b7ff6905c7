package printer

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

// writeArrivals says how far starting workers have come: a line for those of a group and stage that the same message is
// about, with the earliest of their times since.
func writeArrivals(p *Page, c apiv1.Cluster) {
	t := newTable(p, "@STARTING", "#PODS", "STAGE", "#SINCE", "~WHY")
	for _, alike := range alikeArrivals(c.Arrivals) {
		t.Add(arrivalCells(alike, p.Now())...)
	}
	t.WriteApart(p)
	starting := 0
	for _, g := range c.Groups {
		starting += g.Starting
	}
	if more := starting - len(c.Arrivals); more > 0 && len(c.Arrivals) > 0 {
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

func arrivalCells(alike []apiv1.Arrival, now time.Time) []any {
	since := unknownCell
	if first := alike[0].Since; first != nil { // they are sorted by it
		since = planner.Span(now.Sub(*first).Seconds())
	}
	return []any{alike[0].Group, len(alike), alike[0].Stage, since, alike[0].Message}
}

// writeDepartures lists the workers whose machine is about to go or whose GPU is bad.
func writeDepartures(p *Page, departures []apiv1.Departure) {
	t := newTable(p, "@LEAVES", "@GROUP", "@STATE", "@UNTIL", "~WHY")
	for _, d := range departures {
		state := Cell{Text: "warning"}
		switch {
		case d.Leaving:
			state = Cell{Text: "LEAVING", Style: Warn}
		case d.Certain:
			state = Cell{Text: "goes", Style: Warn}
		}
		until := unknownCell
		if d.Deadline != nil {
			until = d.Deadline.UTC().Format(time.TimeOnly)
		}
		t.Add(d.Pod, d.Group, state, until, d.Sign+": "+d.Message)
	}
	t.WriteApart(p)
}
