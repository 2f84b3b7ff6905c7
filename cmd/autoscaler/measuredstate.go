package main

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// stateOf is what is so of a RayCluster since a decision.
func stateOf(d *controller.Decision) telemetry.State {
	s := telemetry.State{
		Managed: d.Mode == nodepool.Managed, DataAge: d.Age(d.At.Add(d.Took)),
		Unmet: unmetOf(d.Plan), Ray: raysOwn(d),
	}
	s.Demand, s.Requested = demandOf(d.Plan.Summary)
	ready, cooling := map[string]int{}, map[string]time.Duration{}
	for i := range d.Snapshot.Nodes {
		if n := &d.Snapshot.Nodes[i]; alive(n) {
			ready[n.Group]++
		}
	}
	for _, g := range d.Snapshot.Groups {
		cooling[g.Name] = time.Duration(g.CoolingSeconds * float64(time.Second))
	}
	for _, g := range d.Plan.Groups {
		group := telemetry.Group{Name: g.Name, Current: g.Current, Desired: g.Desired, Ready: ready[g.Name], Min: g.Min, Max: g.Max, Cooldown: cooling[g.Name]}
		if n, known := d.NumGPUs[g.Name]; known {
			group.NumGPUsMismatch, group.NumGPUs = n.Mismatch, columnsOf(n)
		}
		s.Groups = append(s.Groups, group)
	}
	return s
}

// columnsOf are the numbers of GPUs that are known.
func columnsOf(n controller.GroupNumGPUs) map[string]float64 {
	columns := map[string]float64{}
	for column, amount := range map[string]*raydemand.Amount{"declared": n.Declared, "derived": n.Derived, "reported": n.Reported, "ray": n.Ray} {
		if amount != nil {
			columns[column] = amount.Float()
		}
	}
	return columns
}

// unmetOf counts what the plan does not serve by the code of its reason.
func unmetOf(p planner.Plan) map[string]int64 {
	unmet := map[string]int64{}
	for _, u := range slices.Concat(p.InfeasibleRequests, p.InfeasibleRequestResources) {
		unmet[u.Reason.Code] += u.Count
	}
	for _, u := range p.InfeasibleGangRequests {
		unmet[u.Reason.Code]++
	}
	return unmet
}

// demandOf adds up what waits by resource and state, and the bundles of request_resources by status.
func demandOf(summary []planner.DemandSummary) (demand map[string]map[string]float64, requested map[string]int64) {
	demand, requested = map[string]map[string]float64{}, map[string]int64{}
	for _, d := range summary {
		for state, count := range fatesOf(d) {
			switch {
			case count == 0:
			case d.Kind == planner.KindRequestResources:
				requested[state] += count
			case d.Gang != nil:
				for _, bundle := range d.Gang.Bundles {
					addDemand(demand, bundle, state, count)
				}
			default:
				addDemand(demand, d.Resources, state, count)
			}
		}
	}
	return demand, requested
}

// fatesOf counts what becomes of one demand.
func fatesOf(d planner.DemandSummary) map[string]int64 {
	return map[string]int64{
		"served": d.Served, "waiting": d.Waiting, "launching": d.Launching,
		planner.Impossible: d.Impossible, planner.Capped: d.Capped, planner.Closed: d.Closed, planner.CoolingDown: d.CoolingDown,
	}
}

func addDemand(demand map[string]map[string]float64, bundle raydemand.Bundle, state string, count int64) {
	for resource, amount := range bundle {
		if demand[resource] == nil {
			demand[resource] = map[string]float64{}
		}
		demand[resource][state] += amount.Float() * float64(count)
	}
}

// raysOwn counts nodes and their resources as Ray's autoscaler does, the head among them.
func raysOwn(d *controller.Decision) telemetry.Ray {
	ray := telemetry.Ray{Session: d.Session, Nodes: map[string]telemetry.NodeCounts{},
		ClusterResources: map[string]float64{}, PendingResources: map[string]float64{}}
	for _, g := range d.Snapshot.Groups {
		ray.Nodes[g.Name] = telemetry.NodeCounts{}
	}
	add := func(n *planner.Node) {
		counts, resources := ray.Nodes[n.Group], map[string]float64(nil)
		switch {
		case alive(n):
			counts.Active++
			resources = ray.ClusterResources
		case n.State == planner.Pending:
			counts.Pending++
			resources = ray.PendingResources
		case n.State == planner.Leaving:
			counts.Failed++
		}
		ray.Nodes[n.Group] = counts
		if resources != nil {
			for name, amount := range n.Total {
				resources[name] += amount.Float()
			}
		}
	}
	if d.Snapshot.Head != nil {
		add(d.Snapshot.Head)
	}
	for i := range d.Snapshot.Nodes {
		add(&d.Snapshot.Nodes[i])
	}
	return ray
}
