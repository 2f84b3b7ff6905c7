package gcs

import (
	"context"
	"fmt"
	"math"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxLaunching bounds the entries of one group: `ray status` counts entries, one per pod, so a large group needs
// many, but no reader needs more than this.
const maxLaunching = 1000

// Report tells the GCS what `ray status` in that cluster shows. Reports are numbered by Unix milliseconds, so a
// restarted Heliostat is not taken for an older one; the GCS ignores lower numbers. Report about every 5 s, as Ray
// does.
//
// With RAY_enable_infeasible_task_early_exit the GCS cancels waiting tasks whose shape equals a reported infeasible
// one, without comparing selectors. A request with a selector is therefore not sent: what is impossible in one zone
// would cancel the same shape in another.
func (c *Client) Report(ctx context.Context, report raydemand.Report) error {
	request := &autoscalerpb.ReportAutoscalingStateRequest{AutoscalingState: encodeReport(report, c.nextReport())}
	_, err := call(ctx, c, c.config.Timeout, "ReportAutoscalingState", c.autoscaler.ReportAutoscalingState, request)
	if err != nil {
		return fmt.Errorf("reporting to Ray: %w", err)
	}
	return nil
}

// nextReport never goes back, even when the clock does: the GCS would silently ignore the report.
func (c *Client) nextReport() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastReport = max(c.lastReport, c.config.Now().UnixMilli())
	return c.lastReport
}

func encodeReport(report raydemand.Report, version int64) *autoscalerpb.AutoscalingState {
	state := &autoscalerpb.AutoscalingState{AutoscalerStateVersion: version}
	for _, l := range report.Launching {
		for range min(l.Count, maxLaunching) {
			state.PendingInstanceRequests = append(state.PendingInstanceRequests, &autoscalerpb.PendingInstanceRequest{
				RayNodeTypeName: l.Group, Count: 1, RequestTs: l.Since.Unix(),
			})
		}
	}
	for _, s := range report.Starting {
		state.PendingInstances = append(state.PendingInstances, &autoscalerpb.PendingInstance{
			RayNodeTypeName: s.Group, InstanceId: s.Pod, IpAddress: s.IP, Details: s.Details,
		})
	}
	for _, f := range report.Failed {
		state.FailedInstanceRequests = append(state.FailedInstanceRequests, &autoscalerpb.FailedInstanceRequest{
			RayNodeTypeName: f.Group, Count: int32(min(max(f.Count, 0), math.MaxInt32)), Reason: f.Reason,
			StartTs: f.Start.Unix(), FailedTs: f.Failed.Unix(),
		})
	}
	for _, r := range report.InfeasibleRequests {
		if isConstrained(r) {
			continue
		}
		state.InfeasibleResourceRequests = append(state.InfeasibleResourceRequests, encodeRequest(r.Bundle))
	}
	for _, g := range report.InfeasibleGangs {
		state.InfeasibleGangResourceRequests = append(state.InfeasibleGangResourceRequests, encodeGang(g))
	}
	if len(report.InfeasibleConstraint) > 0 {
		state.InfeasibleClusterResourceConstraints = []*autoscalerpb.ClusterResourceConstraint{
			encodeConstraint(report.InfeasibleConstraint),
		}
	}
	return state
}

// isConstrained reports whether labels may be why r is infeasible. An empty selector means any node.
func isConstrained(r raydemand.Request) bool {
	return len(r.Selectors) > 0 && len(r.Selectors[0]) > 0
}

func encodeConstraint(requests []raydemand.Request) *autoscalerpb.ClusterResourceConstraint {
	constraint := &autoscalerpb.ClusterResourceConstraint{}
	for _, r := range requests {
		constraint.ResourceRequests = append(constraint.ResourceRequests, &autoscalerpb.ResourceRequestByCount{
			Request: encodeRequest(r.Bundle, r.Selectors...), Count: r.Count,
		})
	}
	return constraint
}

// encodeGang writes a gang as the GCS itself lists one: the plain list and one bundle selector.
func encodeGang(g raydemand.Gang) *autoscalerpb.GangResourceRequest {
	gang := &autoscalerpb.GangResourceRequest{Details: fmt.Sprintf("%s:%s|PENDING", g.ID, g.Strategy)}
	selected := &autoscalerpb.BundleSelector{}
	for i, bundle := range g.Bundles {
		plain := encodeRequest(bundle)
		plain.PlacementConstraints = encodePlacement(g)
		gang.Requests = append(gang.Requests, plain)
		var selectors []raydemand.Selector
		if i < len(g.BundleSelectors) && len(g.BundleSelectors[i]) > 0 {
			selectors = g.BundleSelectors[i : i+1]
		}
		constrained := encodeRequest(bundle, selectors...)
		constrained.PlacementConstraints = encodePlacement(g)
		selected.ResourceRequests = append(selected.ResourceRequests, constrained)
	}
	if g.TopologyLabel != "" {
		locality := &autoscalerpb.LocalityConstraint{
			LabelName: g.TopologyLabel, PlacementStrategy: raypb.PlacementStrategy_STRICT_PACK,
		}
		selected.LocalityRequirement = &autoscalerpb.LocalityRequirement{LocalityConstraint: locality}
	}
	gang.BundleSelectors = []*autoscalerpb.BundleSelector{selected}
	return gang
}

func encodePlacement(g raydemand.Gang) []*autoscalerpb.PlacementConstraint {
	switch g.Strategy {
	case raydemand.StrictPack:
		affinity := &autoscalerpb.AffinityConstraint{LabelName: g.PlacedLabel()}
		return []*autoscalerpb.PlacementConstraint{{Affinity: affinity}}
	case raydemand.StrictSpread:
		antiAffinity := &autoscalerpb.AntiAffinityConstraint{LabelName: g.PlacedLabel()}
		return []*autoscalerpb.PlacementConstraint{{AntiAffinity: antiAffinity}}
	}
	return nil
}

func encodeRequest(bundle raydemand.Bundle, selectors ...raydemand.Selector) *autoscalerpb.ResourceRequest {
	request := &autoscalerpb.ResourceRequest{ResourcesBundle: make(map[string]float64, len(bundle))}
	for name, amount := range bundle {
		request.ResourcesBundle[name] = amount.Float()
	}
	for _, s := range selectors {
		request.LabelSelectors = append(request.LabelSelectors, encodeSelector(s))
	}
	return request
}

func encodeSelector(s raydemand.Selector) *raypb.LabelSelector {
	selector := &raypb.LabelSelector{}
	for _, c := range s {
		selector.LabelConstraints = append(selector.LabelConstraints, &raypb.LabelSelectorConstraint{
			LabelKey: c.Key, Operator: raypb.LabelSelectorOperator(c.Op), LabelValues: c.Values,
		})
	}
	return selector
}
