package capacity

import (
	"context"
	"errors"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
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

// PolicyUnwritten is the code of a finding: the status of a CapacityPolicy cannot be written.
const PolicyUnwritten = "capacity-policy-unwritten"

// policyStatuses returns the statuses to write, with what became of warm nodes in that of the policy that counts.
func policyStatuses(o *addon.Cycle) []capacity.Status {
	cluster := &o.View.Cluster
	lines := capacity.NodesLines(o.WarmNodes)
	if cluster.PolicyStatus == nil || cluster.PolicyStatus.WarmNodes == lines {
		return cluster.PolicyStatuses
	}
	counts := *cluster.PolicyStatus
	counts.WarmNodes = lines
	others := slices.DeleteFunc(slices.Clone(cluster.PolicyStatuses),
		func(s capacity.Status) bool { return s.UID == counts.UID })
	return append(others, counts)
}

// reportPolicies writes the statuses of CapacityPolicies that say something else than what counts. They are few and
// change when somebody changes a policy.
func (f *feature) reportPolicies(ctx context.Context, o *addon.Cycle) {
	if o.View.Mode != nodepool.Managed {
		return
	}
	statuses := policyStatuses(o)
	if len(statuses) == 0 {
		f.policies = failing{}
	}
	if !f.policies.rest.Resting(o.View.Now) {
		for _, status := range statuses {
			err := f.writer.ReportPolicy(ctx, o.View.Cluster.Key, status)
			if err == nil {
				continue
			}
			if ctx.Err() == nil && !errors.Is(err, nodepool.ErrNotLeading) && !errors.Is(err, nodepool.ErrReadOnly) {
				f.policies.fail(o.View.Now, err)
			}
			break
		}
	}
	if f.policies.err != nil {
		o.Findings = append(o.Findings, raydemand.Finding{
			Code: PolicyUnwritten, Severity: raydemand.Warning, Object: "RayCluster " + o.View.Cluster.Key.String(),
			Why: f.policies.err.Error(),
			Fix: "grant Heliostat patch on capacitypolicies/status.heliostat.dev, as the chart does",
		})
	}
}

// policyPause is the pause after a status that could not be written to a policy without a RayCluster.
const policyPause = time.Minute

// reportPoliciesWithoutCluster says in the CapacityPolicies for a RayCluster that does not exist that there is none. It
// returns the pause until it must try again; 0 if all is said.
func reportPoliciesWithoutCluster(ctx context.Context, writer Writer, key nodepool.ClusterKey) time.Duration {
	for _, status := range writer.PoliciesWithoutCluster(key) {
		if err := writer.ReportPolicy(ctx, key, status); err != nil {
			return policyPause
		}
	}
	return 0
}
