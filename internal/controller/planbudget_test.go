package controller

import (
	"fmt"
	"reflect"
	"testing"
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
