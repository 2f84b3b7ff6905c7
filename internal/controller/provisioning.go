package controller

import (
	"context"
	"errors"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about ProvisioningRequests.
const (
	// ProvisioningUnused: a group asks for a ProvisioningRequest, and is launched without one.
	ProvisioningUnused = "provisioning-request-unused"
	// ProvisioningUnwritten: a ProvisioningRequest or the annotations of its pods cannot be written.
	ProvisioningUnwritten = "provisioning-request-unwritten"
)

// provision writes what the cycle decided about ProvisioningRequests, within the bounds of guards.
func (c *Controller) provision(ctx context.Context, r *record, o *outcome) {
	defer c.reportProvisions(r, o)
	changes := o.intent.Nodes.Changes
	if len(changes) == 0 {
		r.provisioning.err = nil
	}
	if len(changes) == 0 || r.provisioning.rest.Resting(o.view.Now) {
		return
	}
	writeRound(ctx, c, o, changes, func(change nodepool.ProvisioningChange) bool {
		return c.writeProvision(ctx, r, o, change)
	})
}

// writeProvision carries one change out, and reports whether the round may go on.
func (c *Controller) writeProvision(
	ctx context.Context, r *record, o *outcome, change nodepool.ProvisioningChange,
) bool {
	started := c.config.Now()
	err := c.kube.Provision(ctx, change)
	action := decision.Action{
		At: started, Kind: decision.ActionProvision, Result: decision.ResultOK, Group: change.Request.Group,
		Message: change.Kind + " ProvisioningRequest " + change.Request.Name, Took: c.config.Now().Sub(started),
	}
	if change.Pod.Pod != "" {
		action.Pods = []string{change.Pod.Pod}
	}
	switch {
	case err != nil && ctx.Err() != nil, errors.Is(err, nodepool.ErrReadOnly), errors.Is(err, nodepool.ErrNotLeading):
		return false
	case err == nil:
		r.provisioning = failing{}
	case errors.Is(err, nodepool.ErrConflict), errors.Is(err, nodepool.ErrGone):
		action.Result = decision.ResultConflict
	default:
		r.provisioning.fail(o.view.Now, err)
		if change.Kind == nodepool.AskCapacity {
			r.memory.ProvisionRefused(o.view.Now, change.Request.Group, err)
		}
		action.Result, action.Message = decision.ResultError, err.Error()
	}
	o.actions = append(o.actions, action)
	return err == nil || action.Result == decision.ResultConflict
}

// reportProvisions reports groups that ask for ProvisioningRequests and are launched without, and failed writes.
func (c *Controller) reportProvisions(r *record, o *outcome) {
	cluster := &o.view.Cluster
	if r.provisioning.err != nil {
		o.findings = append(o.findings, raydemand.Finding{
			Code: ProvisioningUnwritten, Severity: raydemand.Error, Object: "RayCluster " + cluster.Key.String(),
			Why: r.provisioning.err.Error(),
			Fix: "grant Heliostat its rights on provisioningrequests, podtemplates and pods in namespace " +
				cluster.Key.Namespace + " (chart value provisioningRequests: true), or correct what the error says",
		})
	}
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		why, fix := o.intent.Nodes.Without[g.Name], "see docs/reference/provisioning-requests.md"
		if g.Provisions && cluster.Provisioning == nil {
			why, fix = "this Heliostat creates none", "serve with --provisioning-requests, or remove the annotation"
		}
		if why != "" {
			o.findings = append(o.findings, raydemand.Finding{
				Code: ProvisioningUnused, Severity: raydemand.Warning, Object: "RayCluster " + cluster.Key.String(),
				Field: "metadata.annotations." + nodepool.ProvisioningAnnotation, Seen: "group " + g.Name, Why: why,
				Fix: fix,
			})
		}
	}
}
