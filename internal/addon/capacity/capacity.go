package capacity

import (
	"context"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

// Writer writes what a capacity policy asks for. After nodepool.ErrConflict and nodepool.ErrGone, observe again.
type Writer interface {
	// KeepNodes creates, changes or removes one CapacityBuffer with its PodTemplate.
	KeepNodes(ctx context.Context, change nodepool.BufferChange) error
	// ReportPolicy writes the status of one CapacityPolicy.
	ReportPolicy(ctx context.Context, cluster nodepool.ClusterKey, status capacity.Status) error
	// PoliciesWithoutCluster returns the statuses to write to CapacityPolicies for a RayCluster that does not exist.
	PoliciesWithoutCluster(cluster nodepool.ClusterKey) []capacity.Status
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
			return addon.Feature{Forget: f.nodes.Forget, Want: want, AfterDrains: f.keepNodes,
				Last: func(ctx context.Context, c *addon.Cycle) {
					if c.View.Cluster.Policy != nil {
						c.LookWithin(policyEvery)
					}
					f.reportPolicies(ctx, c)
					f.endIdle(ctx, c)
				}}
		},
		WithoutCluster: func(ctx context.Context, key nodepool.ClusterKey) time.Duration {
			return reportPoliciesWithoutCluster(ctx, writer, key)
		},
	}
}

// feature is the capacity policy of one RayCluster.
type feature struct {
	loop    addon.Loop
	writer  Writer
	sidecar bool

	nodes    NodeKeeper
	policies failing
	// idleClock measures for how long the RayCluster has been without work.
	idleClock  IdleClock
	idleWrites failing
}

// failing is what is remembered of writes that fail: they rest, and err is why the last one failed.
type failing struct {
	rest addon.Pause
	err  error
}

func (f *failing) fail(now time.Time, err error) {
	f.rest.Fail(now)
	f.err = err
}

// want returns what the capacity policy of the RayCluster wants free now; nil if nothing.
func want(v *observe.View) *planner.Warm {
	policy := v.Cluster.Policy
	if policy == nil {
		return nil
	}
	return planner.WarmOf(policy.Source, policy.At(v.Now))
}
