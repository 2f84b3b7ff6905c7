package controller

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/planner"
)

// intent is what a cycle wants to do: the plan's launches, less what may not be needed after all, and the reductions that are ripe.
type intent struct {
	snapshot planner.Snapshot
	plan     planner.Plan
	// launch counts pods per group; held says per group how many the in-flight caps hold back.
	launch, held map[string]int
	reductions
}

// reductions are what a cycle takes away: the pods that go by name now, and the nodes that are asked to drain.
type reductions struct {
	removals []removal
	wishes   []wish
}

// decide plans for the view. It changes nothing.
func (r *record) decide(v view, config Config) intent {
	i := intent{snapshot: assemble(r.sight(v, config))}
	i.snapshot.Policy = config.Policy
	compute := func(snapshot planner.Snapshot) planner.Plan { return config.turns.compute(snapshot, config.Policy) }
	i.plan = compute(i.snapshot)
	i.launch, i.held = r.gangs.launches(v.now, i.plan, i.snapshot, compute), heldBack(i.plan)
	if v.live() {
		rules := r.reductionRules(config)
		i.removals, i.wishes = rules.removals(v, i.plan), rules.wishes(v, i.plan)
		if r.lag.hidden(v.now) || r.gangs.hidden(v.now) {
			i.wishes = nil // what looks idle and unneeded may be in use by now, and even a refused drain does harm
		}
	}
	return i
}

// reductionRules are the rules by which the record's workers are taken away.
func (r *record) reductionRules(config Config) reductionRules {
	return reductionRules{drains: r.drains, breakers: r.breakers, waits: &r.waits,
		allocationTimeout: config.AllocationTimeout, deadGrace: config.DeadGrace, drainDeadline: config.DrainDeadline}
}

// reduces reports whether anything is to be taken away.
func (s reductions) reduces() bool { return len(s.removals)+len(s.wishes) > 0 }

// withoutReductions keeps the growth only.
func (i intent) withoutReductions() intent {
	i.reductions = reductions{}
	return i
}

// confirmedBy keeps of a fresh intent the reductions that the first one wanted too, so that each was decided on two lists.
func (i intent) confirmedBy(fresh intent) intent {
	fresh.reductions = i.reductions.confirmedBy(fresh.reductions)
	return fresh
}

// confirmedBy keeps of fresh reductions those that the first ones list too.
func (s reductions) confirmedBy(fresh reductions) reductions {
	wanted := map[string]bool{}
	for _, r := range s.removals {
		wanted["remove "+r.pod] = true
	}
	for _, w := range s.wishes {
		wanted["drain "+w.pod] = true
	}
	var both reductions
	for _, r := range fresh.removals {
		if wanted["remove "+r.pod] {
			both.removals = append(both.removals, r)
		}
	}
	for _, w := range fresh.wishes {
		if wanted["drain "+w.pod] {
			both.wishes = append(both.wishes, w)
		}
	}
	return both
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

// newcomerPause is how long a Ray session is watched before anything is taken away from it: two rounds in which the GCS
// asks its raylets.
const newcomerPause = 2 * time.Second

// mayReduce says why nothing may be taken away now, or "".
func (r *record) mayReduce(v view, config Config) string {
	switch {
	case !v.live():
		return "Ray's state could not be read"
	case v.cluster.OwnedUnknown != "":
		return "it is not known what owners ask for: " + v.cluster.OwnedUnknown
	case v.head == nil:
		return "the GCS does not list its own head, so its list of nodes is not complete"
	case r.guard.doubts():
		return r.guard.message
	case r.patches.resting(v.now):
		// A drained node's pod could not be named. When the next try is due, it comes before any drain.
		return "the last patch failed, and the next try is not due yet"
	case r.looks.resting(v.now):
		return fmt.Sprintf("the second look failed: %v", r.lookErr)
	case v.now.Sub(r.line.since) < newcomerPause:
		return "this Ray session was first seen a moment ago, and its nodes may not all be back yet"
	}
	if age := config.Now().Sub(v.readAt); age > config.MaxDataAge {
		return fmt.Sprintf("Ray's state is %s old", planner.Span(age.Seconds()))
	}
	return ""
}
