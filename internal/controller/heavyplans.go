package controller

import (
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// heavyShapes is from how many shapes of owners' requests on a plan is heavy: it then takes megabytes, and tenths of a
// second or more.
const heavyShapes = 500

// heavyPlans lets one heavy plan be made at a time, and pauses as long as it took after each: many RayClusters with very
// many requests take the memory of one plan and half a core, and no plan that is not heavy waits for any of them.
type heavyPlans struct {
	mu sync.Mutex
	// rests is until when the next heavy plan waits. Guarded by mu.
	rests time.Time
}

// compute plans, once the snapshot has its turn. Nil has no turns.
func (t *heavyPlans) compute(snapshot planner.Snapshot, policy planner.Policy) planner.Plan {
	if t == nil || !heavy(snapshot.OwnedRequests) {
		return planner.Compute(snapshot, policy)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	time.Sleep(time.Until(t.rests))
	begun := time.Now()
	plan := planner.Compute(snapshot, policy)
	now := time.Now()
	t.rests = now.Add(now.Sub(begun))
	return plan
}

func heavy(owned []raydemand.Owned) bool {
	shapes := 0
	for i := range owned {
		shapes += len(owned[i].Requests)
	}
	return shapes >= heavyShapes
}
