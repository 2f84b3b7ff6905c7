package controller

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

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
	w.kube.cluster.Owned = []nodepool.OwnedRequest{{Owned: ownedWithShapes(heavyDemand), Cluster: key, ClusterUID: "uid-1", UID: "request"}}
	w.c.config.Now = func() time.Time {
		w.now = w.now.Add(time.Millisecond) // planning takes some
		return w.now
	}
	w.cycle()
	w.c.config.Now = func() time.Time { return w.now }
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

// TestTheNextCycleContinuesWithWhatWasTooMuch: its snapshot says where.
func TestTheNextCycleContinuesWithWhatWasTooMuch(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 1))
	w.manyShapes()
	turns := map[string]bool{}
	for range 4 {
		w.cycle()
		d := w.c.record(key).decision.Load()
		if d.Plan.Deferred == nil {
			t.Fatal("all of it is planned at once; the test needs more")
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

// manyShapes makes requests that each ask for a resource of their own of the first group.
func (w *world) manyShapes() {
	for i := range 500 {
		name := fmt.Sprintf("custom-%03d", i)
		w.kube.cluster.Groups[0].Resources[name] = raydemand.One
		w.ray.demand.Requests = append(w.ray.demand.Requests, raydemand.Request{Count: 1, Bundle: raydemand.Bundle{name: raydemand.One, raydemand.GPU: raydemand.One}})
	}
}

func TestAHeavyPlanIsQueuedAndALightOneIsNot(t *testing.T) {
	c := New(nil, nil, DefaultConfig())
	c.heavy.Lock() // a heavy plan is being computed
	made := make(chan int, 2)
	go func() {
		c.compute(planner.Snapshot{OwnedRequests: []raydemand.Owned{ownedWithShapes(heavyDemand)}})
		made <- heavyDemand
	}()
	c.compute(planner.Snapshot{OwnedRequests: []raydemand.Owned{ownedWithShapes(heavyDemand - 1)}})
	made <- heavyDemand - 1
	if first := <-made; first != heavyDemand-1 {
		t.Errorf("the plan of %d shapes is computed first", first)
	}
	c.heavy.Unlock()
	<-made
}

func TestTheBundlesOfGangsCanMakeAPlanHeavy(t *testing.T) {
	of := func(gangs, bundles, fallbacks int) *planner.Snapshot {
		g := raydemand.Gang{Bundles: make([]raydemand.Bundle, bundles)}
		for range fallbacks {
			g.Fallbacks = append(g.Fallbacks, g.Bundles)
		}
		return &planner.Snapshot{Demand: raydemand.Demand{Gangs: slices.Repeat([]raydemand.Gang{g}, gangs)}}
	}
	for _, c := range []struct {
		gangs, bundles, fallbacks int
		want                      bool
	}{{10, 200, 0, true}, {10, 199, 0, false}, {10, 100, 1, true}, {heavyDemand, 1, 0, true}, {0, 0, 0, false}} {
		if got := heavy(of(c.gangs, c.bundles, c.fallbacks)); got != c.want {
			t.Errorf("%+v: heavy is %t", c, got)
		}
	}
}
