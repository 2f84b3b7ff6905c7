package printer

import (
	"fmt"
	"strconv"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// WriteShadow writes a comparison for people. If there is none, the RayCluster says why.
func WriteShadow(p *Page, c apiv1.ShadowComparison, cluster apiv1.Cluster) {
	if len(c.Groups) == 0 {
		p.Line("", "Nothing is compared: "+whyNotCompared(cluster))
	} else {
		writeShadowHead(p, c)
		writeShadowGroups(p, c.Groups)
		writeShadowDifferences(p, c.Differences)
	}
}

// enableShadow says how to get a comparison.
const enableShadow = "To compare, annotate it with heliostat.dev/mode: shadow."

// whyNotCompared returns why there is no comparison of a RayCluster.
func whyNotCompared(c apiv1.Cluster) string {
	switch {
	case c.Mode == nodepool.Managed:
		return "Heliostat scales this RayCluster itself (" + c.ModeReason + "). " + enableShadow
	case c.Mode == nodepool.Off:
		return "Heliostat ignores this RayCluster (" + c.ModeReason + "). " + enableShadow
	}
	if note := NotRead(c); note != "" {
		return note + "."
	}
	return "Heliostat has just begun to watch this RayCluster and has no plan to compare yet."
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
	t := newTable(p, "@GROUP", "#OURS", "#THEIRS", "~WHY OURS")
	for _, g := range groups {
		ours := Cell{Text: strconv.Itoa(g.Ours)}
		if g.Ours != g.Theirs {
			ours.Style = Warn
		}
		t.Add(g.Name, ours, g.Theirs, g.Reason.Message)
	}
	t.Write(p)
}

// writeShadowDifferences writes what both sides wanted while they differed, for how long, and what both wanted then.
func writeShadowDifferences(p *Page, all []apiv1.ShadowDifference) {
	t := newTable(p, "#DIFFERED", "#FOR", "@GROUP", "#OURS", "#THEIRS", "#THEN", "~WHY OURS")
	for _, d := range all {
		lasted, agreed := Cell{Text: "still", Style: Warn}, unknownCell
		if d.Until != nil {
			lasted = Cell{Text: planner.Span(d.Until.Sub(d.At).Seconds())}
		}
		if d.Agreed != nil {
			agreed = strconv.Itoa(*d.Agreed)
		}
		t.Add(Ago(d.At, p.Now()), lasted, d.Group, d.Ours, d.Theirs, agreed, d.Reason.Message)
	}
	t.WriteApart(p)
}
