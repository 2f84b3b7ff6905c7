package controller

import (
	"context"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/warmnodes"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ForecastUnused is the code of a finding: a policy asks that forecasts are acted on, and they are not.
const ForecastUnused = "forecast-unused"

// reportForecast reports a policy that asks for what cannot be.
func (c *Controller) reportForecast(o *outcome) {
	policy := o.view.Cluster.Policy
	if policy == nil || policy.Forecast != capacity.ForecastAct {
		return
	}
	why, fix := policy.WhyNoForecast(c.config.ForecastMode), "add a budget to the policy"
	if c.config.Forecast == nil {
		why, fix = "this Heliostat does not forecast", "serve with --forecast suggest or act"
	}
	if why != "" {
		o.findings = append(o.findings, raydemand.Finding{Code: ForecastUnused, Severity: raydemand.Warning,
			Object: policy.Source, Field: "forecast", Seen: policy.Forecast,
			Why: why + ", so nothing is kept by forecasts", Fix: fix})
	}
}

// keepNodes keeps nodes without workers ready, as the policy wants.
func (c *Controller) keepNodes(ctx context.Context, r *record, o *outcome) {
	v := &o.view
	c.reportForecast(o)
	if v.Cluster.Policy != nil {
		o.spent = r.memory.WarmSpent(v.Now, v.Cluster.Policy.Budget)
	}
	authority := warmnodes.Plan
	switch {
	case v.Mode == nodepool.Managed && o.withheld:
		authority = warmnodes.Wait
	case v.Mode == nodepool.Managed:
		authority = warmnodes.Keep
	case v.Why.Code == mode.Suspended:
		authority = warmnodes.Release
	case v.Why.Code == mode.QueuedByKueue, v.Why.Code == mode.ElasticQueuedByKueue,
		mode.HandedBack(&v.Cluster, v.Mode, v.Why):
		authority = warmnodes.ReleaseOwn
	}
	var actions []decision.Action
	o.nodes, actions = r.nodes.Round(ctx, c.kube, authority, warmnodes.Seen{Now: v.Now, Cluster: &v.Cluster,
		Snapshot: &o.intent.Snapshot, Plan: &o.intent.Plan, Spent: o.spent})
	o.findings, o.actions = append(o.findings, o.nodes.Findings...), append(o.actions, actions...)
}
