// Package capacity carries out what the capacity policy of a RayCluster says beside warm workers, which the planner
// keeps: warm nodes, which a node autoscaler keeps ready for CapacityBuffers, and the end of a RayCluster without work,
// which is suspended. What the policy says at a moment is in pkg/nodepool/capacity. Anything unknown changes nothing.
// When an idle worker goes is the planner's decision (internal/planner/place/idle.go).
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
	// EndIdle suspends or resumes a RayCluster in exactly the version in which it was read.
	EndIdle(ctx context.Context, change nodepool.IdleChange) error
}

// policyEvery is how long the decision about a RayCluster with a policy stands at most: schedules begin and end, and
// IdleClock begins anew if it is not told for a while that there is no work.
const policyEvery = 30 * time.Second

// New returns the addon. sidecar: this process ends with its RayCluster.
func New(writer Writer, sidecar bool) addon.Addon {
	return addon.Addon{
		New: func(loop addon.Loop) addon.Feature {
			f := &feature{loop: loop, writer: writer, sidecar: sidecar, end: addon.Writes{Careful: true}}
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

	// nodes are the writes of buffers. managed: this process may have made some, so it removes them when the RayCluster
	// is no longer managed.
	nodes   addon.Writes
	managed bool
	// idleClock measures for how long the RayCluster has been without work.
	idleClock IdleClock
	// end are the writes that suspend or resume it.
	end addon.Writes
}

// want returns what the capacity policy of the RayCluster wants free now; nil if nothing.
func want(v *observe.View) *planner.Warm {
	policy := v.Cluster.Policy
	if policy == nil {
		return nil
	}
	return planner.WarmOf(policy.Source, policy.At(v.Now))
}
