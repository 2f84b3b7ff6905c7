package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// tenths of one.
func tenths(n int64) raydemand.Amount { return raydemand.Amount(n) * raydemand.One / 10 }

func TestWhatWaitsBesideCardsThatTakeItInSumAloneIsLaunchedForAfterAWhile(t *testing.T) {
	// Two actors of 0.3 are left, one on each card: 1.4 are free in sum, and no card has 0.8.
	scattered := func(t *testing.T) *world {
		w := newWorld(t, Config{}, nodepool.WorkerGroup{Name: "gpu", Resources: raydemand.Bundle{"GPU": raydemand.Whole(2)}, Replicas: 1, Max: 3, NumOfHosts: 1})
		n := w.node(w.pod(0))
		n.Status, n.Idle, n.Available = raydemand.Running, 0, raydemand.Bundle{"GPU": tenths(14)}
		return w
	}
	want := func(t *testing.T, w *world, launch int, why string) {
		t.Helper()
		if got := w.cycle().Plan.Launch["gpu"]; got != launch {
			t.Errorf("%s: launches %d, want %d", why, got, launch)
		}
	}
	t.Run("it waits beside a node on which nothing changes", func(t *testing.T) {
		w := scattered(t)
		w.want(1, raydemand.Bundle{"GPU": tenths(8)})
		want(t, w, 0, "Ray may place it yet")
		w.pass(9 * time.Second)
		want(t, w, 0, "too early")
		w.pass(time.Second)
		want(t, w, 1, "after the while")
	})
	t.Run("the node changes", func(t *testing.T) {
		w := scattered(t)
		w.want(1, raydemand.Bundle{"GPU": tenths(8)})
		w.cycle()
		w.pass(9 * time.Second)
		w.node(w.pod(0)).Available["GPU"] = tenths(17)
		w.cycle()
		w.pass(time.Second)
		want(t, w, 0, "the node is another one")
	})
	t.Run("it has just come to a node that was so for long", func(t *testing.T) {
		w := scattered(t)
		w.cycle()
		w.pass(time.Hour)
		w.want(1, raydemand.Bundle{"GPU": tenths(8)})
		want(t, w, 0, "Ray may place it yet")
	})
	t.Run("a gang's bundles wait too", func(t *testing.T) {
		w := scattered(t)
		w.ray.demand.Gangs = []raydemand.Gang{{ID: "a", Strategy: raydemand.Pack, Bundles: []raydemand.Bundle{{"GPU": tenths(8)}}}}
		want(t, w, 0, "Ray may place it yet")
		w.pass(10 * time.Second)
		want(t, w, 1, "after the while")
	})
	t.Run("it waits for something else", func(t *testing.T) {
		w := scattered(t)
		w.ray.demand.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": tenths(8), "licence": raydemand.One}, Count: 1}}
		w.cycle()
		w.pass(10 * time.Second)
		w.ray.demand.Requests = append(w.ray.demand.Requests, raydemand.Request{Bundle: raydemand.Bundle{"GPU": tenths(9)}, Count: 1})
		want(t, w, 0, "nothing is known against 0.9")
	})
}
