package controller

import (
	"context"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/warmnodes"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// keepNodes keeps nodes without workers ready, as the policy wants.
func (c *Controller) keepNodes(ctx context.Context, r *record, o *outcome) {
	v := &o.view
	authority := warmnodes.Plan
	switch {
	case v.Mode == nodepool.Managed && o.withheld:
		authority = warmnodes.Wait
	case v.Mode == nodepool.Managed:
		authority = warmnodes.Keep
	case v.Why.Code == mode.Suspended:
		authority = warmnodes.Release
	case v.Why.Code == mode.QueuedByKueue, v.Why.Code == mode.ElasticQueuedByKueue,
		mode.HandedBack(&v.Cluster, v.Mode, v.Why):
		authority = warmnodes.ReleaseOwn
	}
	var actions []decision.Action
	o.nodes, actions = r.nodes.Round(ctx, c.kube, authority, warmnodes.Seen{Now: v.Now, Cluster: &v.Cluster,
		Snapshot: &o.intent.Snapshot, Plan: &o.intent.Plan})
	o.findings, o.actions = append(o.findings, o.nodes.Findings...), append(o.actions, actions...)
}
