package printer

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

// WriteSupposed writes a what-if plan for people, and its difference to the present plan.
func WriteSupposed(out io.Writer, answer apiv1.WhatIfPlan) error {
	if err := WritePlanText(out, answer.Plan); err != nil {
		return err
	}
	var p Page
	writeDifference(&p, answer.Difference)
	_, err := io.WriteString(out, p.String())
	return err
}

func writeDifference(p *Page, d planner.Difference) {
	p.Line("", "")
	p.Line("", "Difference to the present plan")
	for _, g := range d.Groups {
		p.Line("  ", fmt.Sprintf("group %s: %d pods instead of %d", g.Name, g.To, g.From))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Launch)) {
		p.Line("  ", fmt.Sprintf("launch %+d × %s", d.Launch[name], name))
	}
	for _, t := range d.Stopped {
		p.Line("  ", fmt.Sprintf("%s of %s is stopped (%s)", t.Pod, t.Group, t.Reason))
	}
	for _, t := range d.Spared {
		p.Line("  ", fmt.Sprintf("%s of %s stays", t.Pod, t.Group))
	}
	for _, demand := range d.Demand {
		p.Line("  ", fmt.Sprintf("%s: %s; now: %s", demand.About, orNone(demand.To), orNone(demand.From)))
	}
	if len(d.Groups)+len(d.Launch)+len(d.Stopped)+len(d.Spared)+len(d.Demand) == 0 {
		p.Line("  ", "nothing")
	}
	if d.Price != nil && *d.Price != 0 {
		p.Line("  ", fmt.Sprintf("price of the launches: %+g an hour", *d.Price))
	}
}
