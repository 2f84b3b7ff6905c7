package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func newShadowCommand() *cobra.Command {
	var flags watchFlags
	cmd := &cobra.Command{
		Use:   "shadow RAYCLUSTER",
		Short: "Compares what Heliostat would have of a RayCluster with what somebody else asks for",
		Long: "For a RayCluster that Heliostat only looks at: the pods of each group as Heliostat would have them and as they are asked for,\n" +
			"how long both agreed, and the latest differences, newest first: who wanted first what both came to, and by how many seconds.\n\n" + connectHelp,
		Example: "  autoscaler shadow llm -n ml\n  autoscaler shadow ml/llm -w",
		Args:    exactlyOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, api, err := flags.server.target(args[0])
			if err != nil {
				return err
			}
			cluster := func() (apiv1.Cluster, error) { return api.Status(cmd.Context(), key) }
			as := flags.look(cmd.OutOrStdout(), false)
			write, err := writerOf(flags.output, writeShadow(as, time.Now, cluster))
			if err != nil {
				return err
			}
			return flags.shown(cmd, as, api, key, func(ctx context.Context, out io.Writer) error {
				compared, err := api.Shadow(ctx, key)
				if err != nil {
					return err
				}
				return write(out, compared)
			})
		},
	}
	flags.addTo(cmd)
	return cmd
}

// writeShadow writes a comparison for a person. The RayCluster is asked for where nothing is compared, to say why.
func writeShadow(as look, now func() time.Time, cluster func() (apiv1.Cluster, error)) func(io.Writer, apiv1.ShadowComparison) error {
	return func(out io.Writer, c apiv1.ShadowComparison) error {
		var p page
		if len(c.Groups) == 0 {
			now, err := cluster()
			if err != nil {
				return err
			}
			p.line("", "Nothing is compared: "+whyNotCompared(now))
		} else {
			writeShadowHead(&p, c)
			writeShadowGroups(&p, c.Groups, as)
			writeShadowDifferences(&p, c.Differences, as, now())
		}
		_, err := io.WriteString(out, p.String())
		return err
	}
}

// whyNotCompared says of a RayCluster of which nothing is compared why that is.
func whyNotCompared(c apiv1.Cluster) string {
	switch {
	case c.Mode == nodepool.Managed:
		return "Heliostat scales this RayCluster itself (" + c.ModeReason + "). The annotation heliostat.dev/mode: shadow lets it look on."
	case c.Mode == nodepool.Off:
		return "Heliostat leaves this RayCluster alone (" + c.ModeReason + "). The annotation heliostat.dev/mode: shadow lets it look on."
	}
	if note := unread(c); note != "" {
		return note + "."
	}
	return "Heliostat looks on since a moment ago, and has made no plan beside the other side's yet."
}

func writeShadowHead(p *page, c apiv1.ShadowComparison) {
	writer := "somebody whom the object does not name"
	if c.Writer != "" {
		writer = c.Writer
	}
	p.line("", "The worker groups were last written by "+writer+".")
	if c.Agreement != nil {
		p.line("", fmt.Sprintf("Both agreed %.1f %% of the %s in which both were known.", 100**c.Agreement, planner.Span(c.ComparedSeconds)))
	}
	if c.MedianLeadSeconds != nil {
		p.line("", fmt.Sprintf("Heliostat was first %s, the other side %s; in the middle Heliostat was %s.",
			times(c.OursFirst), times(c.TheirsFirst), leadText(*c.MedianLeadSeconds)))
	}
}

func writeShadowGroups(p *page, groups []apiv1.ShadowGroup, as look) {
	p.line("", "")
	t := table{look: as, columns: []column{{"GROUP", asName}, {"OURS", asNumber}, {"THEIRS", asNumber}, {"WHY OURS", asProse}}}
	for _, g := range groups {
		ours := numberCell(g.Ours)
		if g.Ours != g.Theirs {
			ours.style = doubt
		}
		t.add(cell{text: g.Name}, ours, numberCell(g.Theirs), cell{text: g.Reason.Message})
	}
	t.write(p)
}

func writeShadowDifferences(p *page, all []apiv1.ShadowDifference, as look, now time.Time) {
	if len(all) == 0 {
		return
	}
	p.line("", "")
	t := table{look: as, columns: []column{{"DIFFERED", asNumber}, {"GROUP", asName}, {"OURS", asNumber}, {"THEIRS", asNumber}, {"OUTCOME", asText}, {"WHY OURS", asProse}}}
	for _, d := range all {
		t.add(cell{text: ago(d.At, now)}, cell{text: d.Group}, numberCell(d.Ours), numberCell(d.Theirs),
			outcomeCell(d), cell{text: d.Reason.Message})
	}
	t.write(p)
}

func outcomeCell(d apiv1.ShadowDifference) cell {
	switch d.Outcome {
	case apiv1.OursFirst, apiv1.TheirsFirst:
		style := good
		if d.Outcome == apiv1.TheirsFirst {
			style = doubt
		}
		return cell{leadText(*d.LeadSeconds), style}
	case apiv1.OursWithdrawn:
		return cell{text: "ours taken back"}
	case apiv1.TheirsWithdrawn:
		return cell{text: "theirs taken back"}
	case apiv1.Differs:
		return cell{"differs", doubt}
	}
	return cell{text: string(d.Outcome)}
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
