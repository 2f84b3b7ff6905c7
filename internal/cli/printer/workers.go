package printer

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

// writeArrivals says how far starting workers have come: a line for those of a group and stage that the same message is
// about, with the earliest of their times since. A node autoscaler does not report on every pod, so pods with and
// without its message alternate.
func writeArrivals(p *Page, c apiv1.Cluster) {
	type line struct{ group, stage, message string }
	lines, pods := []apiv1.Arrival{}, map[line]int{}
	for _, a := range c.Arrivals { // sorted by time within a group and stage
		key := line{a.Group, a.Stage, a.Message}
		if pods[key]++; pods[key] == 1 {
			lines = append(lines, a)
		}
	}
	t := newTable("STARTING", "PODS", "STAGE", "SINCE", "WHY")
	for _, a := range lines {
		since := ""
		if a.Since != nil {
			since = planner.Span(p.Now.Sub(*a.Since).Seconds())
		}
		t.Add(a.Group, pods[line{a.Group, a.Stage, a.Message}], a.Stage, since, a.Message)
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

// writeDepartures lists the workers whose machine is about to go or whose GPU is bad.
func writeDepartures(p *Page, departures []apiv1.Departure) {
	t := newTable("LEAVES", "GROUP", "STATE", "UNTIL", "WHY")
	for _, d := range departures {
		state, until := "warning", ""
		switch {
		case d.Leaving:
			state = "LEAVING"
		case d.Certain:
			state = "goes"
		}
		if d.Deadline != nil {
			until = d.Deadline.UTC().Format(time.TimeOnly)
		}
		t.Add(d.Pod, d.Group, state, until, d.Sign+": "+d.Message)
	}
	t.WriteApart(p)
}
