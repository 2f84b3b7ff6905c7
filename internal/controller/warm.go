package controller

import (
	"context"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/warmnodes"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// warmWanted returns what the capacity policy of the RayCluster wants free now, with its budget; nil if nothing.
func (r *record) warmWanted(v observation.View, config Config) *planner.Warm {
	policy := v.Cluster.Policy
	if policy == nil {
		return nil
	}
	spent := r.warmMeter.Spent(v.Now, policy.Budget)
	if policy.Budget != nil && config.WarmSpent != nil {
		spent = r.warmMeter.AtLeast(config.WarmSpent(v.Cluster.Key, policy.Budget.DayStart(v.Now)))
	}
	warm := planner.WarmOf(policy.Source, policy.At(v.Now))
	if more := slices.Concat(r.upgrade.Entries(v.Now), r.expected(v, config)); len(more) > 0 {
		if warm == nil {
			warm = &planner.Warm{Policy: policy.Source}
		}
		warm.Keep = append(warm.Keep, more...)
	}
	if warm != nil && policy.Budget != nil {
		perDay := policy.Budget.PerDay
		warm.BudgetPerDay, warm.SpentToday = &perDay, &spent
	}
	return warm
}

// forecastLasts is how long a forecast counts. Its slots are five minutes long.
const forecastLasts = 30 * time.Second

// expected returns what forecasts keep ready, where they are acted on.
func (r *record) expected(v observation.View, config Config) []planner.WarmEntry {
	last := r.decision.Load()
	if config.Forecast == nil || last == nil || v.Cluster.Policy.WhyNoForecast(config.ForecastMode) != "" {
		r.forecast, r.forecastDue = nil, time.Time{}
		return nil
	}
	if !v.Now.Before(r.forecastDue) {
		r.forecast, r.forecastDue = config.Forecast(last, v.Now), v.Now.Add(forecastLasts)
	}
	return r.forecast
}

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

// chargeWarm lets what is warm cost money until the next decision. Only what Heliostat scales is there because of it.
func (r *record) chargeWarm(o *outcome) {
	if o.view.Mode != nodepool.Managed {
		r.warmMeter.Charge(0)
		return
	}
	r.warmMeter.Charge(warmCost(&o.intent.snapshot, &o.intent.plan) + o.nodes.PerHour)
}

// keepNodes keeps nodes without workers ready, as the policy wants.
func (c *Controller) keepNodes(ctx context.Context, r *record, o *outcome) {
	v := &o.view
	c.reportForecast(o)
	o.findings = append(o.findings, r.upgrade.Findings(v.Now, &v.Cluster)...)
	if v.Cluster.Policy != nil {
		o.spent = r.warmMeter.Spent(v.Now, v.Cluster.Policy.Budget)
	}
	authority := warmnodes.Plan
	switch {
	case v.Mode == nodepool.Managed && o.withheld:
		authority = warmnodes.Wait
	case v.Mode == nodepool.Managed:
		authority = warmnodes.Keep
	case v.Why.Code == mode.Suspended:
		authority = warmnodes.Release
	case v.Why.Code == mode.QueuedByKueue, v.Why.Code == mode.ElasticQueuedByKueue, handedBack(*v):
		authority = warmnodes.ReleaseOwn
	}
	var actions []decision.Action
	o.nodes, actions = r.nodes.Round(ctx, c.kube, authority, warmnodes.Seen{Now: v.Now, Cluster: &v.Cluster,
		Snapshot: &o.intent.snapshot, Plan: &o.intent.plan, Spent: o.spent})
	o.findings, o.actions = append(o.findings, o.nodes.Findings...), append(o.actions, actions...)
}

// warmCost returns what the pods cost per hour that are free for warm capacity alone.
func warmCost(s *planner.Snapshot, p *planner.Plan) float64 {
	perHour := 0.0
	for k := range p.Warm {
		for i := range s.Groups {
			if g := &s.Groups[i]; g.Price != nil {
				perHour += *g.Price * float64(p.Warm[k].Pods[g.Name])
			}
		}
	}
	return perHour
}
