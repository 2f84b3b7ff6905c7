package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func ownedWithShapes(n int) raydemand.Owned {
	var owned raydemand.Owned
	for i := range n {
		owned.Requests = append(owned.Requests, raydemand.Request{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.Whole(int64(1 + i))}, Count: 1})
	}
	owned.ID = fmt.Sprint(n)
	return owned
}

func TestAHeavyRayClusterRestsAfterItsPlanAndDelaysNoOther(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 1))
	w.kube.cluster.Owned = []nodepool.OwnedRequest{{Owned: ownedWithShapes(heavyShapes), Cluster: key, ClusterUID: "uid-1", UID: "request"}}
	w.cycle()
	reads := w.ray.reads
	if pause := w.c.Cycle(t.Context(), key); pause <= 0 || w.ray.reads != reads {
		t.Errorf("the next cycle is due in %v and read Ray %d times, want a rest without a reading", pause, w.ray.reads-reads)
	}
	w.c.Cycle(t.Context(), nodepool.ClusterKey{Namespace: "ml", Name: "other"})
	if w.ray.reads == reads {
		t.Error("another RayCluster waits while the first one rests")
	}
	w.pass(time.Minute)
	w.c.Cycle(t.Context(), key)
	if w.ray.reads < reads+2 {
		t.Error("the first RayCluster is not read after its rest")
	}
}

// TestTheNextCycleContinuesWithWhatWasTooMuch: its snapshot says where, and with which budget.
func TestTheNextCycleContinuesWithWhatWasTooMuch(t *testing.T) {
	w := newWorld(t, Config{PlanBudget: time.Millisecond}, gpuGroup("gpu", 1, 1, 1))
	w.manyShapes()
	turns := map[string]bool{}
	for range 4 {
		w.cycle()
		d := w.c.record(key).decision.Load()
		if d.Plan.Deferred == nil || d.Snapshot.Policy.Work == 0 {
			t.Fatalf("deferred %+v with a budget of %d, want a part of the demand", d.Plan.Deferred, d.Snapshot.Policy.Work)
		}
		if d.Next > time.Second {
			t.Errorf("the next cycle is due in %v, want it soon although nothing changes", d.Next)
		}
		if again := planner.Compute(d.Snapshot, d.Snapshot.Policy); !reflect.DeepEqual(again.Deferred, d.Plan.Deferred) {
			t.Errorf("the snapshot defers %+v, want %+v as in the decision", again.Deferred, d.Plan.Deferred)
		}
		turns[d.Snapshot.Turn] = true
		w.pass(time.Minute)
	}
	if len(turns) < 2 {
		t.Errorf("the turns are %v", turns)
	}
	w.ray.demand = raydemand.Demand{}
	if d := w.cycle(); d.Plan.Deferred != nil {
		t.Errorf("without demand, %+v is deferred", d.Plan.Deferred)
	}
	if d := w.after(time.Minute); d.Snapshot.Turn != "" {
		t.Errorf("without demand, the turn is %q", d.Snapshot.Turn)
	}
}

// TestDemandInTurnsHasOneEvent: each plan leaves other demand unserved.
func TestDemandInTurnsHasOneEvent(t *testing.T) {
	group := gpuGroup("gpu", 0, 0, 3)
	w := newWorld(t, Config{PlanBudget: time.Millisecond}, group)
	w.manyShapes()
	for range 5 {
		w.pass(time.Minute)
		w.cycle()
	}
	if d := w.c.record(key).decision.Load(); d.Plan.Deferred == nil {
		t.Fatal("all of it is planned at once")
	}
	if got := w.kube.emitted(addon.ReasonCapped); got != 1 {
		t.Errorf("%d Events, want one for all: %v", got, w.kube.events)
	}
}

// manyShapes makes requests that each ask for a resource of their own of the first group.
func (w *world) manyShapes() {
	for i := range heavyShapes {
		name := fmt.Sprintf("custom-%03d", i)
		w.kube.cluster.Groups[0].Resources[name] = raydemand.One
		w.ray.demand.Requests = append(w.ray.demand.Requests, raydemand.Request{Count: 1, Bundle: raydemand.Bundle{name: raydemand.One, raydemand.GPU: raydemand.One}})
	}
}

func withShapes(n int) *planner.Snapshot {
	var owned raydemand.Owned
	for i := range n {
		owned.Requests = append(owned.Requests, raydemand.Request{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.Whole(int64(1 + i))}, Count: 1})
	}
	return &planner.Snapshot{OwnedRequests: []raydemand.Owned{owned}}
}

func TestAHeavyPlanIsQueuedAndALightOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plans := newPlanBudget(time.Second)
		plans.slot <- struct{}{} // a heavy plan is being computed
		made := make(chan int, 2)
		for _, n := range []int{heavyShapes, heavyShapes - 1} {
			go func() {
				if _, err := plans.Compute(t.Context(), withShapes(n), &planTime{}); err != nil {
					t.Error(err)
				}
				made <- n
			}()
		}
		if first := <-made; first != heavyShapes-1 {
			t.Errorf("the plan of %d shapes is computed first", first)
		}
		<-plans.slot
		<-made
	})
}

func TestAHeavyPlanStopsWaitingWhenTheProcessEnds(t *testing.T) {
	plans := newPlanBudget(time.Second)
	plans.slot <- struct{}{} // a heavy plan is being computed
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := plans.Compute(ctx, withShapes(heavyShapes), &planTime{}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the end of the context", err)
	}
}

func TestTheWaitForTheSlotIsNoTimeOfThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plans := newPlanBudget(time.Second)
		plans.slot <- struct{}{} // a heavy plan is being computed
		time.AfterFunc(time.Minute, func() { <-plans.slot })
		spent := planTime{Took: time.Second, Waited: time.Second}
		if _, err := plans.Compute(t.Context(), withShapes(heavyShapes), &spent); err != nil {
			t.Fatal(err)
		}
		if want := (planTime{Took: time.Second, Waited: time.Minute + time.Second}); spent != want {
			t.Errorf("spent %v, want %v: plans take no time here", spent, want)
		}
	})
}

// gangsOf returns gangs of so many bundles. like says which bundles are alike: those with equal numbers.
func gangsOf(count, bundles int, like func(gang, bundle int) int) *planner.Snapshot {
	gangs := make([]raydemand.Gang, count)
	for g := range gangs {
		for k := range bundles {
			gangs[g].Bundles = append(gangs[g].Bundles, raydemand.Bundle{
				raydemand.CPU: raydemand.Whole(1), raydemand.GPU: raydemand.Whole(int64(1 + like(g, k)))})
		}
	}
	return &planner.Snapshot{Demand: raydemand.Demand{Gangs: gangs}}
}

func TestTheBundlesOfGangsCanMakeAPlanHeavy(t *testing.T) {
	selected := gangsOf(1, heavyShapes, func(int, int) int { return 0 })
	fallbacks := gangsOf(1, 1, func(int, int) int { return 0 })
	for k := range heavyShapes {
		selector := raydemand.NewSelector(raydemand.Constraint{Key: "rank", Op: raydemand.In, Values: []string{fmt.Sprint(k)}})
		selected.Gangs[0].BundleSelectors = append(selected.Gangs[0].BundleSelectors, selector)
		fallbacks.Gangs[0].Fallbacks = append(fallbacks.Gangs[0].Fallbacks, []raydemand.Bundle{{raydemand.CPU: raydemand.Whole(int64(2 + k))}})
	}
	for _, c := range []struct {
		name     string
		snapshot *planner.Snapshot
		want     bool
	}{
		{"25 gangs of 20 different bundles", gangsOf(25, 20, func(g, k int) int { return 20*g + k }), true},
		{"25 gangs of 20 bundles, equal in each gang", gangsOf(25, 20, func(g, _ int) int { return g }), false},
		{"499 equal gangs of 20 different bundles", gangsOf(heavyShapes-1, 20, func(_, k int) int { return k }), false},
		{"499 gangs of 200 equal bundles", gangsOf(heavyShapes-1, 200, func(int, int) int { return 0 }), false},
		{"gangs of the same sum", gangsOf(251, 2, func(g, k int) int { return 500 + g*(2*k-1) }), true},
		{"500 equal gangs", gangsOf(heavyShapes, 1, func(int, int) int { return 0 }), true},
		{"bundles with different selectors", selected, true},
		{"different fallbacks", fallbacks, true},
		{"no demand", &planner.Snapshot{}, false},
	} {
		if got := heavyDemand(c.snapshot); got != c.want {
			t.Errorf("%s: heavy is %t", c.name, got)
		}
	}
}

func BenchmarkHeavyOfManyEqualBundles(b *testing.B) {
	s := gangsOf(heavyShapes-1, 200, func(int, int) int { return 0 })
	for b.Loop() {
		heavyDemand(s)
	}
}

func TestABudgetFollowsTheSpeedOfPlans(t *testing.T) {
	b := newPlanBudget(2 * time.Second)
	if got := b.work(0); got != 2*looksPerSecond {
		t.Errorf("at first %d", got)
	}
	if got := b.work(1500 * time.Millisecond); got != looksPerSecond/2 {
		t.Errorf("%d for the half second that is left", got)
	}
	if got := b.work(time.Hour); got != looksPerSecond/4 {
		t.Errorf("%d when the time is over, want an eighth", got)
	}
	for range 100 {
		b.learn(looksPerSecond/10, time.Second)
	}
	if got := b.work(0); float64(got) > looksPerSecond/5 || float64(got) < looksPerSecond/6 {
		t.Errorf("%d after plans that took ten times as long", got)
	}
	b.learn(10, time.Hour) // a plan without work shows nothing
	for range 100 {
		b.learn(looksPerSecond, 24*time.Hour)
	}
	if got := float64(b.work(0)); got < 2*looksPerSecond/mostOff-1e6 {
		t.Errorf("%v without CPU time", got)
	}
}
