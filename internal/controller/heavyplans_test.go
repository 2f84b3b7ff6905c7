package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
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

func withShapes(n int) planner.Snapshot {
	return planner.Snapshot{OwnedRequests: []raydemand.Owned{ownedWithShapes(n)}}
}

func TestAHeavyPlanIsQueuedAndALightOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plans := newHeavyPlans()
		plans.slot <- struct{}{} // a heavy plan is being computed
		made := make(chan int, 2)
		for _, n := range []int{heavyShapes, heavyShapes - 1} {
			go func() {
				if _, _, err := plans.compute(t.Context(), withShapes(n), planner.Policy{}); err != nil {
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
	plans := newHeavyPlans()
	plans.slot <- struct{}{} // a heavy plan is being computed
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := plans.compute(ctx, withShapes(heavyShapes), planner.Policy{}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the end of the context", err)
	}
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
