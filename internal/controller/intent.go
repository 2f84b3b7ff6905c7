package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/provision"
	"heliostat.dev/heliostat/internal/controller/reduction"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// intent is what a cycle is going to do: the plan's launches, less those that may turn out unnecessary, and the
// reductions that are due.
type intent struct {
	snapshot planner.Snapshot
	plan     planner.Plan
	// launch counts pods per group; held says per group how many pods the in-flight caps hold back.
	launch, held map[string]int
	// nodes are the ProvisioningRequests for launches that wait for all their nodes.
	nodes provision.Decision
	reduction.Set
}

// decide plans for the view, leaves alone what other RayClusters have on their way, and reserves what it launches.
// Cycles of RayClusters run side by side: if others have reserved more since the plan began, it plans again.
func (c *Controller) decide(ctx context.Context, r *record, v *observation.View) (intent, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		before := c.promises.Before(&v.Cluster, v.Now)
		v.Cluster.Promise(before)
		i, err := r.decide(ctx, *v, c.config)
		switch {
		case err != nil, v.Mode != nodepool.Managed, len(i.launch) == 0, v.Cluster.Stock == nil:
			return i, err
		case c.promises.Reserve(&v.Cluster, i.launch, before, v.Now), attempt == attempts:
			return i, nil
		}
	}
}

// decide plans for the view. It fails only when ctx ends before a heavy plan is computed.
func (r *record) decide(ctx context.Context, v observation.View, config Config) (intent, error) {
	i := intent{snapshot: observation.Assemble(r.snapshotInput(v, config))}
	i.snapshot.Policy, i.snapshot.Turn = config.Policy, r.turn
	var errs error
	compute := func(snapshot *planner.Snapshot) planner.Plan {
		plan, took, err := config.plans.Compute(ctx, snapshot, r.heavyTook)
		r.heavyTook += took
		errs = errors.Join(errs, err)
		return plan
	}
	i.plan = compute(&i.snapshot)
	again := func(snapshot planner.Snapshot) planner.Plan { return compute(&snapshot) }
	i.launch, i.held = r.gangs.Launches(v.Now, i.plan, i.snapshot, again), heldBack(i.plan)
	if errs != nil {
		return intent{snapshot: i.snapshot}, errs
	}
	r.askForNodes(v, &i)
	if v.Live() {
		rules := r.reductionRules(config)
		rules.Moved = r.endable.in(&v.Cluster)
		i.Removals, i.Drains = rules.Removals(v, i.plan), rules.DrainRequests(v, i.plan)
		i.Removals = append(i.Removals, reduction.Evicted(v, i.launch)...)
		if r.lag.MayHidePlacement(v.Now) || r.gangs.MayHidePlacement(v.Now) {
			i.Drains = nil // idle workers may have work by now, and even a refused drain does harm
		}
	}
	return i, nil
}

// askForNodes lets launches wait for the nodes of a whole gang, where groups ask for it. Other modes write nothing, so
// nothing waits; what this process has asked for before, it takes back.
func (r *record) askForNodes(v observation.View, i *intent) {
	switch {
	case v.Mode == nodepool.Managed && v.Live():
		r.provisioned = true
		i.nodes = r.provisions.Decide(v.Now, &v.Cluster, i.launch, len(v.Demand.Gangs) > 0)
		i.launch = i.nodes.Launch
	case r.provisioned && handedBack(v):
		i.nodes = provision.HandBack(&v.Cluster)
	}
	for k := range i.plan.Groups {
		if g := &i.plan.Groups[k]; i.nodes.Waits[g.Name] != "" {
			waits := planner.Reason{Code: planner.CodeProvisioning, Message: i.nodes.Waits[g.Name]}
			g.Reasons = slices.Insert(slices.Clone(g.Reasons), 0, waits)
		}
	}
}

// nextTurn returns where the next plan continues if there was too much demand for this one.
func (i *intent) nextTurn() string {
	if i.plan.Deferred == nil {
		return ""
	}
	return i.plan.Deferred.Next
}

// reductionRules returns the rules for taking workers of this record away.
func (r *record) reductionRules(config Config) reduction.Rules {
	return reduction.Rules{Drains: r.drains, Breakers: r.breakers, Waits: &r.clocks, TakenBack: r.refusals.TakenBack,
		AllocationTimeout: config.AllocationTimeout, DeadGrace: config.DeadGrace, DrainDeadline: config.DrainDeadline}
}

// withoutReductions keeps only the growth.
func (i intent) withoutReductions() intent {
	i.Set = reduction.Set{}
	return i
}

// confirmedBy keeps of a fresh intent only the reductions of the first one, so that two lists support each.
func (i intent) confirmedBy(fresh intent) intent {
	fresh.Set = i.Set.ConfirmedBy(fresh.Set)
	return fresh
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

// sessionPause is how long a Ray session is observed before anything is taken away from it: two rounds in which the
// GCS polls its raylets.
const sessionPause = 2 * time.Second

// mayReduce returns why nothing may be taken away now, or "".
func (r *record) mayReduce(v observation.View, config Config) string {
	switch doubt := r.doubt(v, config); {
	case doubt != "":
		return doubt
	case v.Cluster.OwnedUnknown != "":
		return "the ResourceRequests are unknown: " + v.Cluster.OwnedUnknown
	case v.Cluster.PolicyUnknown != "":
		return "the CapacityPolicies are unknown: " + v.Cluster.PolicyUnknown
	case r.reverts.Pause(v.Now) != "":
		// A reduction lowers replicas and names its pods. If the names are set back and the number is not yet, or the
		// number is lowered further, the operator deletes other pods.
		return r.reverts.Pause(v.Now)
	case r.patches.Resting(v.Now):
		// The pod of a drained node could not be named. The next patch comes before any drain.
		return "the last patch failed, and the next one is not due yet"
	case r.freshReads.Resting(v.Now):
		return fmt.Sprintf("reading the RayCluster again before a reduction failed: %v", r.freshErr)
	}
	return ""
}

// doubt returns why Ray's reading does not prove that a node is idle, or "".
func (r *record) doubt(v observation.View, config Config) string {
	switch {
	case !v.Live():
		return "Ray's state cannot be read"
	case v.Head == nil:
		return "the GCS does not list its own head, so its list of nodes is incomplete"
	case r.guard.Doubts():
		return r.guard.Message
	case v.Now.Sub(r.gcs.Since) < sessionPause:
		return "this Ray session is new to Heliostat, and not all of its nodes may be back yet"
	}
	if age := config.Now().Sub(v.ReadAt); age > config.MaxDataAge {
		return fmt.Sprintf("Ray's state is %s old", planner.Span(age.Seconds()))
	}
	return ""
}
