package capacity

import (
	"context"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// keepNodes keeps nodes without workers ready, as the policy wants.
func (f *feature) keepNodes(ctx context.Context, o *addon.Cycle) {
	v := &o.View
	authority := Plan
	switch {
	case v.Mode == nodepool.Managed && o.Withheld:
		authority = Wait
	case v.Mode == nodepool.Managed:
		authority = Keep
	case v.Why.Code == addon.Suspended:
		authority = Release
	case v.Why.Code == addon.QueuedByKueue, v.Why.Code == addon.ElasticQueuedByKueue,
		addon.HandedBack(&v.Cluster, v.Mode, v.Why):
		authority = ReleaseOwn
	}
	nodes, actions := f.nodes.Round(ctx, f.loop.MayWrite, f.writer.KeepNodes, authority,
		Seen{Now: v.Now, Cluster: &v.Cluster, Snapshot: &o.Intent.Snapshot, Plan: &o.Intent.Plan})
	o.WarmNodes, o.Open = nodes.Plans, o.Open || f.nodes.err != nil
	o.Findings, o.Actions = append(o.Findings, nodes.Findings...), append(o.Actions, actions...)
}
