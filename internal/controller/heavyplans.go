package controller

import (
	"context"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// heavyShapes is the number of shapes of ResourceRequests from which a plan is heavy: it then takes megabytes of
// memory, and tenths of a second or more.
const heavyShapes = 500

// heavyPlans computes one heavy plan at a time, so that many RayClusters with very many requests take the memory of one
// plan and at most one core. Other plans never wait. After a heavy plan its RayCluster rests for as long as the plan
// took (record.restUntil), so that it takes at most half of a core and leaves room for other heavy RayClusters.
type heavyPlans struct {
	slot chan struct{} // full while a heavy plan is computed
}

func newHeavyPlans() *heavyPlans { return &heavyPlans{slot: make(chan struct{}, 1)} }

// compute returns the plan, and how long it took if it is heavy. A heavy plan waits for the slot; if ctx ends first,
// compute returns its error.
func (h *heavyPlans) compute(
	ctx context.Context, snapshot planner.Snapshot, policy planner.Policy,
) (plan planner.Plan, took time.Duration, err error) {
	if !heavy(snapshot.OwnedRequests) {
		return planner.Compute(snapshot, policy), 0, nil
	}
	select {
	case h.slot <- struct{}{}:
	case <-ctx.Done():
		return plan, 0, fmt.Errorf("waiting to compute a large plan: %w", ctx.Err())
	}
	defer func() { <-h.slot }()
	begun := time.Now()
	plan = planner.Compute(snapshot, policy)
	return plan, time.Since(begun), nil
}

func heavy(owned []raydemand.Owned) bool {
	shapes := 0
	for i := range owned {
		shapes += len(owned[i].Requests)
	}
	return shapes >= heavyShapes
}
