package controller

import (
	"context"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/planner"
)

// heavyDemand is the number of listed requests and bundles of gangs from which a plan is heavy. The planner takes on a
// part of very much demand, but reads and reports all of it: from there on, that takes tens of megabytes and tenths of
// a second (BenchmarkKinds of package planner).
const heavyDemand = 2000

// heavy reports whether a snapshot has very much demand.
func heavy(s *planner.Snapshot) bool {
	listed := 0
	for _, requests := range s.RequestLists() {
		listed += len(requests)
	}
	for i := range s.Gangs {
		listed += len(s.Gangs[i].Bundles)
		for _, bundles := range s.Gangs[i].Fallbacks {
			listed += len(bundles)
		}
	}
	return listed >= heavyDemand
}

// heavyPlans computes one heavy plan at a time, so that many RayClusters with very much demand take the memory of one
// plan and at most one core. Other plans never wait. The caller lets a RayCluster rest after its heavy plans for as
// long as they took, so that it takes at most half of a core and leaves room for others.
type heavyPlans struct {
	now  func() time.Time // real time, whatever clock the loop has
	slot chan struct{}    // full while a heavy plan is computed
}

func newHeavyPlans() *heavyPlans {
	return &heavyPlans{now: time.Now, slot: make(chan struct{}, 1)}
}

// planTime is the time that the heavy plans of one cycle have used: Took to compute them, and Waited for their turn.
type planTime struct{ Took, Waited time.Duration }

// Compute returns the plan, and adds the time of a heavy one to spent. If ctx ends before its turn, Compute returns
// the error of ctx.
func (h *heavyPlans) Compute(
	ctx context.Context, snapshot planner.Snapshot, spent *planTime,
) (plan planner.Plan, err error) {
	if !heavy(&snapshot) {
		return planner.Compute(snapshot, snapshot.Policy), nil
	}
	asked := h.now()
	select {
	case h.slot <- struct{}{}:
	case <-ctx.Done():
		return plan, fmt.Errorf("waiting to compute a large plan: %w", ctx.Err())
	}
	defer func() { <-h.slot }()
	begun := h.now()
	plan = planner.Compute(snapshot, snapshot.Policy)
	spent.Waited, spent.Took = spent.Waited+begun.Sub(asked), spent.Took+h.now().Sub(begun)
	return plan, nil
}
