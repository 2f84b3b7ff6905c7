package printer

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// WriteShadow writes a comparison for people. If there is none, it fetches the RayCluster to say why.
func WriteShadow(
	as Look,
	now func() time.Time,
	cluster func() (apiv1.Cluster, error),
) func(io.Writer, apiv1.ShadowComparison) error {
	return func(out io.Writer, c apiv1.ShadowComparison) error {
		var p Page
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

func writeShadowGroups(p *Page, groups []apiv1.ShadowGroup, as Look) {
	p.Line("", "")
	t := Table{
		Look: as,
		Columns: []Column{Name("GROUP"), Number("OURS"), Number("THEIRS"),
			Prose("WHY OURS")},
	}
	for _, g := range groups {
		ours := numberCell(g.Ours)
		if g.Ours != g.Theirs {
			ours.Style = Warn
		}
		t.Add(Cell{Text: g.Name}, ours, numberCell(g.Theirs), Cell{Text: g.Reason.Message})
	}
	t.Write(p)
}

func writeShadowDifferences(p *Page, all []apiv1.ShadowDifference, as Look, now time.Time) {
	if len(all) == 0 {
		return
	}
	p.Line("", "")
	t := Table{
		Look: as,
		Columns: []Column{Number("DIFFERED"), Name("GROUP"), Number("OURS"),
			Number("THEIRS"), Text("OUTCOME"), Prose("WHY OURS")},
	}
	for _, d := range all {
		t.Add(Cell{Text: Ago(d.At, now)}, Cell{Text: d.Group}, numberCell(d.Ours),
			numberCell(d.Theirs), outcomeCell(d), Cell{Text: d.Reason.Message})
	}
	t.Write(p)
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
