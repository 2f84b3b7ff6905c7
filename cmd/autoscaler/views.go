package main

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/httpapi"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fleet shows the loop's decisions to the REST server.
type fleet struct{ loop *controller.Controller }

// Views returns every cluster's last decision.
func (f fleet) Views() []httpapi.View {
	var views []httpapi.View
	for _, d := range f.loop.Decisions() {
		views = append(views, viewOf(d))
	}
	return views
}

// View returns one cluster's.
func (f fleet) View(key nodepool.ClusterKey) (httpapi.View, bool) {
	d, known := f.loop.Decision(key)
	if !known {
		return httpapi.View{}, false
	}
	return viewOf(d), true
}

func viewOf(d *controller.Decision) httpapi.View {
	v := httpapi.View{
		Key: d.Cluster, Mode: d.Mode, ModeReason: d.Why.Message, Frozen: d.Kube.Freeze, Paused: d.Paused,
		CycleAt: d.At, CycleTook: d.Took, StateAt: d.ReadAt, Error: d.Err,
		Snapshot: d.Snapshot, Plan: d.Plan, Requested: d.Kube.RequestResources, Findings: d.Findings,
	}
	if v.Error == "" {
		v.Error = d.RayErr
	}
	v.NumGPUs = make(map[string]httpapi.GroupNumGPUs, len(d.NumGPUs))
	for group, n := range d.NumGPUs {
		v.NumGPUs[group] = httpapi.GroupNumGPUs(n)
	}
	for _, a := range slices.Backward(d.Recent) {
		v.Changes = append(v.Changes, httpapi.Decision{
			At: a.At, Action: actionName(a), Group: a.Group, From: a.From, To: a.To, Pods: a.Pods,
			Reason: planner.Reason{Code: a.Kind + "-" + a.Result, Message: a.Message},
		})
	}
	return v
}

// actionName says in a word what was done.
func actionName(a controller.Action) string {
	switch {
	case a.Result != controller.ResultOK:
		return a.Kind + "-" + a.Result
	case a.Kind == controller.ActionDrain:
		return "drain"
	case a.Kind == controller.ActionSync:
		return "num-gpus"
	case a.To > a.From:
		return "scale-up"
	case a.To < a.From:
		return "scale-down"
	case len(a.Pods) > 0:
		return "replace"
	}
	return "clear"
}

// measured turns a decision into the values that are measured.
func measured(d *controller.Decision) telemetry.Cycle {
	c := telemetry.Cycle{
		Namespace: d.Cluster.Namespace, Cluster: d.Cluster.Name,
		Managed: d.Mode == nodepool.Managed, Failed: d.Err != "", RayFailed: d.RayErr != "" && d.Mode != nodepool.Off,
		Took: d.Took, SeenToPatched: d.SeenToPatched, DataAge: d.Age(d.At.Add(d.Took)),
		Unmet: map[string]int64{},
	}
	for _, g := range d.Plan.Groups {
		group := telemetry.Group{Name: g.Name, Current: g.Current, Desired: g.Desired, Min: g.Min, Max: g.Max}
		if n, known := d.NumGPUs[g.Name]; known {
			group.NumGPUsMismatch = n.Mismatch
			group.NumGPUs = map[string]float64{}
			for column, amount := range map[string]*raydemand.Amount{"declared": n.Declared, "derived": n.Derived, "reported": n.Reported, "ray": n.Ray} {
				if amount != nil {
					group.NumGPUs[column] = amount.Float()
				}
			}
		}
		c.Groups = append(c.Groups, group)
	}
	for _, a := range d.Actions {
		c.Actions = append(c.Actions, telemetry.Action{Kind: a.Kind, Result: a.Result, Took: max(a.Took, time.Duration(0))})
	}
	for _, u := range slices.Concat(d.Plan.InfeasibleRequests, d.Plan.InfeasibleRequestResources) {
		c.Unmet[u.Reason.Code] += u.Count
	}
	for _, u := range d.Plan.InfeasibleGangRequests {
		c.Unmet[u.Reason.Code]++
	}
	return c
}
