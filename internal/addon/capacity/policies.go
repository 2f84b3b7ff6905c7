package capacity

import (
	"context"
	"errors"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
