package printer

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli/table"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// WriteShadow writes a comparison for people. If there is none, it fetches the RayCluster to say why.
func WriteShadow(
	as table.Look,
	now func() time.Time,
	cluster func() (apiv1.Cluster, error),
) func(io.Writer, apiv1.ShadowComparison) error {
	return func(out io.Writer, c apiv1.ShadowComparison) error {
		var p table.Page
		if len(c.Groups) == 0 {
			now, err := cluster()
			if err != nil {
				return err
			}
			p.Line("", "Nothing is compared: "+whyNotCompared(now))
		} else {
			writeShadowHead(&p, c)
			writeShadowGroups(&p, c.Groups, as)
			writeShadowDifferences(&p, c.Differences, as, now())
		}
		_, err := io.WriteString(out, p.String())
		return err
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

func writeShadowHead(p *table.Page, c apiv1.ShadowComparison) {
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

func writeShadowGroups(p *table.Page, groups []apiv1.ShadowGroup, as table.Look) {
	p.Line("", "")
	t := table.Table{
		Look: as,
		Columns: []table.Column{table.Name("GROUP"), table.Number("OURS"), table.Number("THEIRS"),
			table.Prose("WHY OURS")},
	}
	for _, g := range groups {
		ours := numberCell(g.Ours)
		if g.Ours != g.Theirs {
			ours.Style = table.Warn
		}
		t.Add(table.Cell{Text: g.Name}, ours, numberCell(g.Theirs), table.Cell{Text: g.Reason.Message})
	}
	t.Write(p)
}

func writeShadowDifferences(p *table.Page, all []apiv1.ShadowDifference, as table.Look, now time.Time) {
	if len(all) == 0 {
		return
	}
	p.Line("", "")
	t := table.Table{
		Look: as,
		Columns: []table.Column{table.Number("DIFFERED"), table.Name("GROUP"), table.Number("OURS"),
			table.Number("THEIRS"), table.Text("OUTCOME"), table.Prose("WHY OURS")},
	}
	for _, d := range all {
		t.Add(table.Cell{Text: table.Ago(d.At, now)}, table.Cell{Text: d.Group}, numberCell(d.Ours),
			numberCell(d.Theirs), outcomeCell(d), table.Cell{Text: d.Reason.Message})
	}
	t.Write(p)
}

func outcomeCell(d apiv1.ShadowDifference) table.Cell {
	switch d.Outcome {
	case apiv1.OursFirst, apiv1.TheirsFirst:
		style := table.Good
		if d.Outcome == apiv1.TheirsFirst {
			style = table.Warn
		}
		return table.Cell{Text: leadText(*d.LeadSeconds), Style: style}
	case apiv1.OursWithdrawn:
		return table.Cell{Text: "ours withdrawn"}
	case apiv1.TheirsWithdrawn:
		return table.Cell{Text: "theirs withdrawn"}
	case apiv1.Differs:
		return table.Cell{Text: "differs", Style: table.Warn}
	}
	return table.Cell{Text: string(d.Outcome)}
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
