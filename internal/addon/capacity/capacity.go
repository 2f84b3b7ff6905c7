package capacity

import (
	"context"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Writer writes what a capacity policy asks for. After nodepool.ErrConflict and nodepool.ErrGone, observe again.
type Writer interface {
	// KeepNodes creates, changes or removes one CapacityBuffer with its PodTemplate.
	KeepNodes(ctx context.Context, change nodepool.BufferChange) error
	// EndIdle suspends, resumes or deletes a RayCluster in exactly the version in which it was read.
	EndIdle(ctx context.Context, change nodepool.IdleChange) error
}

// policyEvery is how long the decision about a RayCluster with a policy stands at most: schedules begin and end, and
// IdleClock begins anew if it is not told for a while that there is no work.
const policyEvery = 30 * time.Second

// New returns the addon. sidecar: this process ends with its RayCluster.
func New(writer Writer, sidecar bool) addon.Addon {
	return addon.Addon{
		New: func(loop addon.Loop) addon.Feature {
			f := &feature{loop: loop, writer: writer, sidecar: sidecar}
			return addon.Feature{Want: want, AfterDrains: f.keepNodes,
				Last: func(ctx context.Context, c *addon.Cycle) {
					if c.View.Cluster.Policy != nil {
						c.LookWithin(policyEvery)
					}
					f.endIdle(ctx, c)
				}}
		},
	}
}

// feature is the capacity policy of one RayCluster.
type feature struct {
	loop    addon.Loop
	writer  Writer
	sidecar bool

	nodes NodeKeeper
	// idleClock measures for how long the RayCluster has been without work.
	idleClock IdleClock
	// idleRest is the pause after the end of the RayCluster could not be written, and idleErr is why.
	idleRest addon.Pause
	idleErr  error
}

// want returns what the capacity policy of the RayCluster wants free now; nil if nothing.
func want(v *observe.View) *planner.Warm {
	policy := v.Cluster.Policy
	if policy == nil {
		return nil
	}
	return planner.WarmOf(policy.Source, policy.At(v.Now))
}

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
	nodes, actions := f.nodes.Round(ctx, f.loop.MayWrite, f.writer, authority,
		Seen{Now: v.Now, Cluster: &v.Cluster, Snapshot: &o.Intent.Snapshot, Plan: &o.Intent.Plan})
	o.WarmNodes, o.Open = nodes.Plans, o.Open || f.nodes.err != nil
	o.Findings, o.Actions = append(o.Findings, nodes.Findings...), append(o.Actions, actions...)
}
