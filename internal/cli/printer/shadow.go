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
	if c.MedianLeadSeconds != nil {
		p.Line("", fmt.Sprintf("Heliostat was first %s, the other writer %s; in the median, Heliostat was %s.",
			times(c.OursFirst), times(c.TheirsFirst), leadText(*c.MedianLeadSeconds)))
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

func writeShadowDifferences(p *Page, all []apiv1.ShadowDifference) {
	t := newTable(p, "#DIFFERED", "@GROUP", "#OURS", "#THEIRS", "OUTCOME", "~WHY OURS")
	for _, d := range all {
		t.Add(Ago(d.At, p.Now()), d.Group, d.Ours, d.Theirs, outcomeCell(d), d.Reason.Message)
	}
	t.WriteApart(p)
}

func outcomeCell(d apiv1.ShadowDifference) Cell {
	switch d.Outcome {
	case apiv1.OursFirst, apiv1.TheirsFirst:
		style := Good
		if d.Outcome == apiv1.TheirsFirst {
			style = Warn
		}
		return Cell{Text: leadText(*d.LeadSeconds), Style: style}
	case apiv1.OursWithdrawn:
		return Cell{Text: "ours withdrawn"}
	case apiv1.TheirsWithdrawn:
		return Cell{Text: "theirs withdrawn"}
	case apiv1.Differs:
		return Cell{Text: "differs", Style: Warn}
	}
	return Cell{Text: string(d.Outcome)}
}

// leadText says by how much Heliostat was earlier.
func leadText(lead float64) string {
	if lead < 0 {
		return planner.Span(-lead) + " later"
	}
	return planner.Span(lead) + " earlier"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}
