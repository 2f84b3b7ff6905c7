package gcs

import (
	"context"
	"fmt"
	"math"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxLaunching is the maximum number of entries for one group. `ray status` counts entries, one for each pod, so a
// large group needs many. More than this number is of no use to readers.
const maxLaunching = 1000

// Report sends the GCS what `ray status` shows in that cluster. The version of a report is the time in Unix
// milliseconds, so it still increases after Heliostat restarts. The GCS ignores lower versions. Call Report about every
// 5 s, as Ray does.
//
// With RAY_enable_infeasible_task_early_exit, the GCS cancels pending tasks that have the shape of a reported
// infeasible request. It does not compare selectors. Therefore Report omits requests with a selector: a request that is
// infeasible in one zone would cancel tasks of the same shape in other zones.
func (c *Client) Report(ctx context.Context, report raydemand.Report) error {
	request := &autoscalerpb.ReportAutoscalingStateRequest{AutoscalingState: encodeReport(report, c.nextReport())}
	_, err := call(ctx, c, c.config.Timeout, "ReportAutoscalingState", c.autoscaler.ReportAutoscalingState, request)
	if err != nil {
		return fmt.Errorf("reporting to Ray: %w", err)
	}
	return nil
}

// nextReport returns the next version. It increases even if the clock goes back, because the GCS silently ignores lower
// versions.
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

// isConstrained reports whether labels can be the reason that r is infeasible. An empty selector matches any node.
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

// encodeGang encodes a gang in the form that the GCS lists it: the plain list and one bundle selector.
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
