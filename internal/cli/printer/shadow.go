package printer

import (
	"fmt"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

// WriteShadow writes a comparison for people.
func WriteShadow(p *Page, c apiv1.ShadowComparison) {
	if len(c.Groups) == 0 {
		p.Line("", "Nothing is compared: that needs the mode shadow, and the state of Ray; see `autoscaler status`.")
		return
	}
	writeShadowHead(p, c)
	writeShadowGroups(p, c.Groups)
	writeShadowDifferences(p, c.Differences)
}

func writeShadowHead(p *Page, c apiv1.ShadowComparison) {
	writer := "an unknown writer"
	if c.Writer != "" {
		writer = c.Writer
	}
	p.Line("", "The worker groups were last written by "+writer+".")
	if c.Agreement != nil {
		p.Line(
			"",
			fmt.Sprintf("Both agreed during %.1f %% of the %s in which both were known.", 100**c.Agreement,
				planner.Span(c.ComparedSeconds)),
		)
	}
}

func writeShadowGroups(p *Page, groups []apiv1.ShadowGroup) {
	p.Line("", "")
	t := newTable("GROUP", "OURS", "THEIRS", "WHY OURS")
	for _, g := range groups {
		t.Add(g.Name, g.Ours, g.Theirs, g.Reason.Message)
	}
	t.Write(p)
}

// writeShadowDifferences writes what both sides wanted while they differed, for how long, and what both wanted then.
func writeShadowDifferences(p *Page, all []apiv1.ShadowDifference) {
	t := newTable("DIFFERED", "FOR", "GROUP", "OURS", "THEIRS", "THEN", "WHY OURS")
	for _, d := range all {
		lasted := "still"
		if d.Until != nil {
			lasted = planner.Span(d.Until.Sub(d.At).Seconds())
		}
		t.Add(Ago(d.At, p.Now), lasted, d.Group, d.Ours, d.Theirs, known(d.Agreed), d.Reason.Message)
	}
	t.WriteApart(p)
}
