package controller

import (
	"heliostat.dev/heliostat/internal/addon/provisioning"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
)

// Intent is what a cycle is going to do: the plan's launches, less those that may turn out unnecessary, and the
// reductions that are due.
type Intent struct {
	// Snapshot is what the plan was computed from, Plan what the planner wants.
	Snapshot planner.Snapshot
	Plan     planner.Plan
	// Launch counts pods per group; Held says per group how many pods the in-flight caps hold back.
	Launch, Held map[string]int
	// Nodes are the ProvisioningRequests for launches that wait for all their nodes.
	Nodes provisioning.Decision
	// Set is what is taken away.
	scaledown.Set
}

// WithoutReductions keeps only the growth.
func (i Intent) WithoutReductions() Intent {
	i.Set = scaledown.Set{}
	return i
}

// ConfirmedBy keeps of a fresh intent only the reductions of the first one, so that two lists support each.
func (i Intent) ConfirmedBy(fresh Intent) Intent {
	fresh.Set = i.Set.ConfirmedBy(fresh.Set)
	return fresh
}

// ReasonOf returns the planner's first reason for a group.
func (i Intent) ReasonOf(group string) string {
	for _, g := range i.Plan.Groups {
		if g.Name == group && len(g.Reasons) > 0 {
			return g.Reasons[0].Message
		}
	}
	return ""
}

// nextTurn returns where the next plan continues if there was too much demand for this one.
func (i *Intent) nextTurn() string {
	if i.Plan.Deferred == nil {
		return ""
	}
	return i.Plan.Deferred.Next
}

// heldBack returns per group how many pods the policy's in-flight caps hold back.
func heldBack(plan planner.Plan) map[string]int {
	held := map[string]int{}
	for _, g := range plan.Groups {
		if g.Held > 0 {
			held[g.Name] = g.Held
		}
	}
	return held
}
