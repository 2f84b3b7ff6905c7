package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/reduction"
	"heliostat.dev/heliostat/internal/planner"
)

// intent is what a cycle wants to do: the plan's launches, less what may not be needed after all, and the reductions that are ripe.
type intent struct {
	snapshot planner.Snapshot
	plan     planner.Plan
	// launch counts pods per group; held says per group how many the in-flight caps hold back.
	launch, held map[string]int
	reduction.Set
}

// decide plans for the view. It fails only when ctx ends before a heavy plan is computed.
func (r *record) decide(ctx context.Context, v observation.View, config Config) (intent, error) {
	i := intent{snapshot: observation.Assemble(r.snapshotInput(v, config))}
	i.snapshot.Policy = config.Policy
	var errs error
	compute := func(snapshot planner.Snapshot) planner.Plan {
		plan, took, err := config.heavy.compute(ctx, snapshot, config.Policy)
		r.heavyTook += took
		errs = errors.Join(errs, err)
		return plan
	}
	i.plan = compute(i.snapshot)
	i.launch, i.held = r.gangs.Launches(v.Now, i.plan, i.snapshot, compute), heldBack(i.plan)
	if errs != nil {
		return intent{snapshot: i.snapshot}, errs
	}
	if v.Live() {
		rules := r.reductionRules(config)
		i.Removals, i.Drains = rules.Removals(v, i.plan), rules.DrainRequests(v, i.plan)
		if r.lag.MayHidePlacement(v.Now) || r.gangs.MayHidePlacement(v.Now) {
			i.Drains = nil // what looks idle and unneeded may be in use by now, and even a refused drain does harm
		}
	}
	return i, nil
}

// reductionRules are the rules by which the record's workers are taken away.
func (r *record) reductionRules(config Config) reduction.Rules {
	return reduction.Rules{Drains: r.drains, Breakers: r.breakers, Waits: &r.clocks,
		AllocationTimeout: config.AllocationTimeout, DeadGrace: config.DeadGrace, DrainDeadline: config.DrainDeadline}
}

// withoutReductions keeps the growth only.
func (i intent) withoutReductions() intent {
	i.Set = reduction.Set{}
	return i
}

// confirmedBy keeps of a fresh intent the reductions that the first one wanted too, so that each was decided on two lists.
func (i intent) confirmedBy(fresh intent) intent {
	fresh.Set = i.Set.ConfirmedBy(fresh.Set)
	return fresh
}

// heldBack says per group how many pods the policy's caps on pods on their way hold back.
func heldBack(plan planner.Plan) map[string]int {
	held := map[string]int{}
	for _, g := range plan.Groups {
		if g.Held > 0 {
			held[g.Name] = g.Held
		}
	}
	return held
}

// sessionPause is how long a Ray session is watched before anything is taken away from it: two rounds in which the GCS
// asks its raylets.
const sessionPause = 2 * time.Second

// mayReduce says why nothing may be taken away now, or "".
func (r *record) mayReduce(v observation.View, config Config) string {
	switch {
	case !v.Live():
		return "Ray's state could not be read"
	case v.Cluster.OwnedUnknown != "":
		return "it is not known what owners ask for: " + v.Cluster.OwnedUnknown
	case v.Head == nil:
		return "the GCS does not list its own head, so its list of nodes is not complete"
	case r.guard.Doubts():
		return r.guard.Message
	case r.patches.resting(v.Now):
		// A drained node's pod could not be named. When the next try is due, it comes before any drain.
		return "the last patch failed, and the next try is not due yet"
	case r.freshReads.resting(v.Now):
		return fmt.Sprintf("the second look failed: %v", r.freshErr)
	case v.Now.Sub(r.gcs.Since) < sessionPause:
		return "this Ray session was first seen a moment ago, and its nodes may not all be back yet"
	}
	if age := config.Now().Sub(v.ReadAt); age > config.MaxDataAge {
		return fmt.Sprintf("Ray's state is %s old", planner.Span(age.Seconds()))
	}
	return ""
}
