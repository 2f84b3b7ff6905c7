package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// PolicyUnwritten is the code of a finding: the status of a CapacityPolicy cannot be written.
const PolicyUnwritten = "capacity-policy-unwritten"

// policyStatuses returns the statuses to write, with what became of warm nodes in that of the policy that counts.
func (o *outcome) policyStatuses() []capacity.Status {
	cluster := &o.view.Cluster
	lines := capacity.NodesLines(o.nodes.Plans)
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
func (c *Controller) reportPolicies(ctx context.Context, r *record, o *outcome) {
	statuses := o.policyStatuses()
	if len(statuses) == 0 {
		r.policies = failing{}
	}
	if !r.policies.rest.Resting(o.view.Now) {
		for _, status := range statuses {
			err := c.kube.ReportPolicy(ctx, o.view.Cluster.Key, status)
			if err == nil {
				continue
			}
			if ctx.Err() == nil && !errors.Is(err, nodepool.ErrNotLeading) && !errors.Is(err, nodepool.ErrReadOnly) {
				r.policies.fail(o.view.Now, err)
			}
			break
		}
	}
	if r.policies.err != nil {
		o.findings = append(o.findings, raydemand.Finding{
			Code: PolicyUnwritten, Severity: raydemand.Warning, Object: "RayCluster " + o.view.Cluster.Key.String(),
			Why: r.policies.err.Error(),
			Fix: "grant Heliostat patch on capacitypolicies/status.heliostat.dev, as the chart does",
		})
	}
}

// policyPause is the pause after a status that could not be written to a policy without a RayCluster.
const policyPause = time.Minute

// reportPoliciesWithoutCluster says in the CapacityPolicies for a RayCluster that does not exist that there is none. It
// returns the pause until it must try again; 0 if all is said.
func (c *Controller) reportPoliciesWithoutCluster(ctx context.Context, key nodepool.ClusterKey) time.Duration {
	for _, status := range c.kube.PoliciesWithoutCluster(key) {
		if err := c.kube.ReportPolicy(ctx, key, status); err != nil {
			return policyPause
		}
	}
	return 0
}
