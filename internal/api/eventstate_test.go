package api

import (
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAnotherShapeOfADemandIsAChange(t *testing.T) {
	of := func(change func(*planner.DemandSummary)) uint64 {
		view := busy()
		view.Plan.Summary = slices.Clone(view.Plan.Summary)
		view.Plan.Summary = append(view.Plan.Summary, planner.DemandSummary{Kind: "request", Resources: raydemand.Bundle{raydemand.CPU: raydemand.One}, Asked: 1, Served: 1})
		change(&view.Plan.Summary[len(view.Plan.Summary)-1])
		return stateOf(view, busyNoon).planSum
	}
	same := of(func(*planner.DemandSummary) {})
	if same != of(func(*planner.DemandSummary) {}) {
		t.Fatal("the same plan has two sums")
	}
	zone, err := raydemand.ParseSelector(map[string]string{"zone": "us-1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*planner.DemandSummary){
		"another amount":    func(d *planner.DemandSummary) { d.Resources = raydemand.Bundle{raydemand.CPU: raydemand.One + 1} },
		"another label":     func(d *planner.DemandSummary) { d.Selectors = []raydemand.Selector{zone} },
		"another slice":     func(d *planner.DemandSummary) { d.Slice = &raydemand.SliceRequirement{Memory: 1 << 30} },
		"another kind":      func(d *planner.DemandSummary) { d.Kind = "requestResources" },
		"over REST":         func(d *planner.DemandSummary) { d.OverREST = true },
		"a placement group": func(d *planner.DemandSummary) { d.Gang = &raydemand.Gang{ID: "3f2a"} },
	} {
		if of(change) == same {
			t.Errorf("%s is not a change", name)
		}
	}
}

func TestAnotherStateOfARequestIsAChange(t *testing.T) {
	of := func(change func(*View)) uint64 {
		view := busy()
		view.Kube.Owned = []nodepool.OwnedRequest{{Owned: raydemand.Owned{ID: "train-7", Owner: "ann"}, LeaseSeconds: 60, RenewedAt: busyNoon, Status: nodepool.OwnedStatus{State: raydemand.RequestWaiting}}}
		view.Plan.Requests = []planner.RequestPlan{{ID: "train-7", Owner: "ann", State: raydemand.RequestWaiting}}
		change(&view)
		return stateOf(view, busyNoon).planSum
	}
	same := of(func(*View) {})
	for name, change := range map[string]func(*View){
		"the plan":          func(v *View) { v.Plan.Requests[0].State = raydemand.RequestSatisfied },
		"the stored status": func(v *View) { v.Kube.Owned[0].Status.State = raydemand.RequestSatisfied },
		"the reason":        func(v *View) { v.Kube.Owned[0].Status.Code = planner.Capped },
		"the pods":          func(v *View) { v.Kube.Owned[0].Status.Pods = []string{"a"} },
		"another priority":  func(v *View) { v.Kube.Owned[0].Priority = 5 },
		"no request":        func(v *View) { v.Kube.Owned, v.Plan.Requests = nil, nil },
	} {
		if of(change) == same {
			t.Errorf("%s is not a change", name)
		}
	}
	if of(func(v *View) { v.Kube.Owned[0].RenewedAt = busyNoon.Add(time.Minute) }) != same {
		t.Error("a renewed lease is a change")
	}
}
