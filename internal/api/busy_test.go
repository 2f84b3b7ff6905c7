package api

import (
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// busyNoon is the time of the view.
var busyNoon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// busyKey is the RayCluster of the view.
var busyKey = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// busy returns a view with a value in every field that the API shows.
func busy() View {
	gpu := raydemand.Bundle{raydemand.CPU: raydemand.Whole(8), raydemand.GPU: raydemand.One}
	half := raydemand.Bundle{raydemand.GPU: raydemand.One / 2}
	capped := planner.Reason{Code: planner.Capped, Message: "group a100 is at its maximum of 4"}
	zone, _ := raydemand.ParseSelector(map[string]string{"zone": "in(us-1,us-2)"})
	gang := raydemand.Gang{
		ID: "3f2a", Strategy: raydemand.StrictSpread,
		Bundles: []raydemand.Bundle{gpu, gpu}, BundleSelectors: []raydemand.Selector{zone, {}},
	}
	return View{
		Decision: addon.Decision{
			Cluster: busyKey,
			Mode:    nodepool.Managed,
			Why:     planner.Reason{Message: "annotation heliostat.dev/mode"},
			Paused:  "Ray's account is 12 s old",
			At:      busyNoon.Add(-time.Second),
			Took:    3 * time.Millisecond,
			Read:    addon.ReadAt(busyNoon.Add(-1500 * time.Millisecond)),
			Err:     "reading Ray's state: deadline exceeded",
			Snapshot: planner.Snapshot{
				Name:    "ml/llm",
				TakenAt: busyNoon.Add(-time.Second),
				Groups: []planner.Group{
					{Name: "a100", Resources: gpu, Max: 4, NumOfHosts: 1},
					{Name: "mig", Closed: "suspended"},
				},
				Nodes: []planner.Node{
					{Pod: "a", Group: "a100", State: planner.Running},
					{Pod: "b", Group: "a100", State: planner.Idle},
					{Pod: "c", Group: "a100", State: planner.Pending, Arrival: &arrival.State{
						Stage: arrival.NodeReady, Message: "nvidia.com/gpu is not registered", Since: busyNoon,
						ExpectedAt: busyNoon.Add(2 * time.Minute), LateAt: busyNoon.Add(4 * time.Minute),
					}},
					{Pod: "d", Group: "a100", State: planner.Leaving},
					{
						Pod:   "e",
						Group: "a100",
						State: planner.AllocationTimeout,
					},
					{Pod: "f", Group: "mig", State: planner.Pending},
				},
				Demand: raydemand.Demand{
					Requests: []raydemand.Request{
						{Bundle: half, Count: 3, Selectors: []raydemand.Selector{zone}}, {Bundle: gpu, Count: 2},
					},
					Gangs:      []raydemand.Gang{gang},
					Constraint: []raydemand.Request{{Bundle: gpu, Count: 7}},
				},
				KeptResources: []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 4}},
			},
			Plan: planner.Plan{
				Groups: []planner.GroupPlan{
					{Name: "a100", Current: 4, Desired: 4, Max: 4, Resources: gpu, Reasons: []planner.Reason{capped}},
					{Name: "mig", Current: 1, Desired: 2, Min: 1, Max: 3},
				},
				InfeasibleRequests: []planner.UnmetRequest{
					{Request: raydemand.Request{Bundle: gpu, Count: 2}, Reason: capped},
				},
				InfeasibleGangRequests: []planner.UnmetGang{{Gang: gang, Reason: capped}},
				InfeasibleRequestResources: []planner.UnmetRequest{
					{Request: raydemand.Request{Bundle: gpu, Count: 3}, Reason: capped},
				},
			},
			Findings: []raydemand.Finding{
				{
					Code:     "demand-truncated",
					Severity: raydemand.Warning,
					Object:   "RayCluster ml/llm",
					Fix:      "ask for fewer shapes",
				},
				{Code: "old-ray", Severity: raydemand.Info},
			},
			Recent: []addon.Action{
				{
					At:   busyNoon.Add(-time.Hour),
					Kind: "patch", Result: "ok",
					Group:   "a100",
					From:    3,
					To:      2,
					Pods:    []string{"z"},
					Message: "without z",
				},
				{
					At:   busyNoon.Add(-time.Minute),
					Kind: "patch", Result: "ok",
					Group:   "a100",
					From:    2,
					To:      4,
					Message: "launching 2 pods for 2 × {GPU 1}",
				},
			},
			Kube: nodepool.Cluster{Freeze: true, RequestResources: []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 4}}},
		},
	}
}
