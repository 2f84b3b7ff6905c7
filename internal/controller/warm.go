package controller

import (
	"context"

	"heliostat.dev/heliostat/internal/addon/capacity"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// keepNodes keeps nodes without workers ready, as the policy wants.
func (c *Controller) keepNodes(ctx context.Context, r *record, o *outcome) {
	v := &o.view
	authority := capacity.Plan
	switch {
	case v.Mode == nodepool.Managed && o.withheld:
		authority = capacity.Wait
	case v.Mode == nodepool.Managed:
		authority = capacity.Keep
	case v.Why.Code == mode.Suspended:
		authority = capacity.Release
	case v.Why.Code == mode.QueuedByKueue, v.Why.Code == mode.ElasticQueuedByKueue,
		mode.HandedBack(&v.Cluster, v.Mode, v.Why):
		authority = capacity.ReleaseOwn
	}
	var actions []decision.Action
	o.nodes, actions = r.nodes.Round(ctx, c.kube, authority, capacity.Seen{Now: v.Now, Cluster: &v.Cluster,
		Snapshot: &o.intent.Snapshot, Plan: &o.intent.Plan})
	o.findings, o.actions = append(o.findings, o.nodes.Findings...), append(o.actions, actions...)
}
