package controller

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// heavyShapes is the number of different requests, gangs and bundles of gangs from which a plan is heavy: it then takes
// megabytes of memory, and tenths of a second or more (BenchmarkLargeGangs of package planner).
const heavyShapes = 500

// looksPerSecond is how much work of the planner (planner.Policy.Work) a core does in a second, before the first heavy
// plan shows it. What heavy plans show counts within a factor of mostOff, so that a process without CPU time still
// plans for something.
const (
	looksPerSecond = 40e6
	mostOff        = 32
)

// planBudget computes plans within the time that a cycle may take for them. The planner counts work and not time, so
// that a snapshot repeats its plan: planBudget turns the time into work by what the last heavy plan took.
//
// It computes one heavy plan at a time, so that many RayClusters with very much demand take the memory of one plan and
// at most one core. Other plans never wait. The caller lets a RayCluster rest after its heavy plans for as long as they
// took, so that it takes at most half of a core and leaves room for others.
type planBudget struct {
	each time.Duration    // for all plans of one cycle
	now  func() time.Time // real time, whatever clock the loop has
	slot chan struct{}    // full while a heavy plan is computed

	mu    sync.Mutex
	speed float64 // looks per second
}

// newPlanBudget returns a budget of this time for all plans of a cycle.
func newPlanBudget(each time.Duration) *planBudget {
	return &planBudget{each: each, now: time.Now, slot: make(chan struct{}, 1), speed: looksPerSecond}
}

// planTime is the time that the heavy plans of one cycle have used: Took to compute them, and Waited for the slot.
type planTime struct{ Took, Waited time.Duration }

// Compute returns the plan. It sets the policy of a heavy snapshot to what the cycle has left after what it has spent,
// and adds to that. A heavy plan waits for the slot; if ctx ends first, Compute returns its error.
func (b *planBudget) Compute(
	ctx context.Context, snapshot *planner.Snapshot, spent *planTime,
) (plan planner.Plan, err error) {
	if !heavyDemand(snapshot) {
		return planner.Compute(*snapshot, snapshot.Policy), nil
	}
	asked := b.now()
	select {
	case b.slot <- struct{}{}:
	case <-ctx.Done():
		return plan, fmt.Errorf("waiting to compute a large plan: %w", ctx.Err())
	}
	defer func() { <-b.slot }()
	begun := b.now()
	snapshot.Policy.Work = b.work(spent.Took)
	plan, work := planner.ComputeCounting(*snapshot, snapshot.Policy)
	took := b.now().Sub(begun)
	spent.Waited, spent.Took = spent.Waited+begun.Sub(asked), spent.Took+took
	b.learn(work, took)
	return plan, nil
}

// work returns how much work the next plan of a cycle may take: in the time that is left, but at least in an eighth of
// all of it, because a cycle may need several plans. Rounded, it stays the same for most plans.
func (b *planBudget) work(spent time.Duration) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := max(b.each-spent, b.each/8)
	const precision = 1_000_000
	return max(int64(b.speed*left.Seconds())/precision, 1) * precision
}

// learn notes how fast a heavy plan was. Plans with little work show nothing: most of their time is something else.
func (b *planBudget) learn(work int64, took time.Duration) {
	if work < looksPerSecond/100 || took <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found := float64(work) / took.Seconds()
	found = min(max(found, looksPerSecond/mostOff), looksPerSecond*mostOff)
	b.speed += (found - b.speed) / 4
}

// heavyDemand reports whether a snapshot has very much different demand.
func heavyDemand(s *planner.Snapshot) bool {
	shapes := 0
	for _, requests := range s.RequestLists() {
		shapes += len(requests)
	}
	return shapes+max(len(s.Gangs), shapesOfGangs(s.Gangs)) >= heavyShapes
}

// shapesOfGangs counts the different bundles of each gang, up to heavyShapes or more. It counts equal gangs once,
// because the planner plans them together, as it does equal bundles of a gang.
func shapesOfGangs(gangs []raydemand.Gang) (shapes int) {
	seed, known := maphash.MakeSeed(), map[uint64]bool{}
	for i := range gangs {
		g := &gangs[i]
		own, whole := map[uint64]bool{}, uint64(0)
		add := func(bundles []raydemand.Bundle, selectors []raydemand.Selector) {
			for k, bundle := range bundles {
				sum := uint64(0) // of the entries, in any order
				for name, amount := range bundle {
					sum += maphash.Comparable(seed, resourceAmount{name, amount})
				}
				if k < len(selectors) && len(selectors[k]) > 0 {
					sum += maphash.String(seed, selectors[k].String())
				}
				own[sum] = true
				whole += maphash.Comparable(seed, sum)
			}
		}
		add(g.Bundles, g.BundleSelectors)
		for k, fallback := range g.Fallbacks {
			var selectors []raydemand.Selector
			if k < len(g.FallbackSelectors) {
				selectors = g.FallbackSelectors[k]
			}
			add(fallback, selectors)
		}
		if !known[whole] {
			known[whole] = true
			shapes += len(own)
		}
		if shapes >= heavyShapes {
			break
		}
	}
	return shapes
}

// resourceAmount is what a bundle requests of one resource.
type resourceAmount struct {
	name   string
	amount raydemand.Amount
}
