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
		w.pass(refusalPatience - time.Second)
		want(t, w, 0, "too early")
		w.pass(time.Second)
		want(t, w, 1, "after the while")
	})
	t.Run("the node changes", func(t *testing.T) {
		w := scattered(t)
		w.want(1, raydemand.Bundle{"GPU": tenths(8)})
		w.cycle()
		w.pass(refusalPatience - time.Second)
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
		w.pass(refusalPatience)
		want(t, w, 1, "after the while")
	})
	t.Run("it waits for something else", func(t *testing.T) {
		w := scattered(t)
		w.ray.demand.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": tenths(8), "licence": raydemand.One}, Count: 1}}
		w.cycle()
		w.pass(refusalPatience)
		w.ray.demand.Requests = append(w.ray.demand.Requests, raydemand.Request{Bundle: raydemand.Bundle{"GPU": tenths(9)}, Count: 1})
		want(t, w, 0, "nothing is known against 0.9")
	})
}

func TestOnlyWhatHasWaitedBesideUnchangedCardsIsRefused(t *testing.T) {
	const patience = refusalPatience
	gpus := func(n int64) raydemand.Bundle { return raydemand.Bundle{"GPU": tenths(n)} }
	onZone := func(zone string) raydemand.Selector {
		return raydemand.Selector{{Key: "zone", Op: raydemand.In, Values: []string{zone}}}
	}
	node := raydemand.Node{ID: nodeID("n"), Status: raydemand.Running, Total: gpus(20), Available: gpus(14), Labels: map[string]string{"zone": "a"}}
	ask := func(requests ...raydemand.Request) raydemand.Demand { return raydemand.Demand{Requests: requests} }
	waits := ask(raydemand.Request{Bundle: gpus(8), Count: 1})
	for name, c := range map[string]struct {
		node   func(*raydemand.Node, time.Duration) // what it is at that time
		demand func(time.Duration) raydemand.Demand
		want   raydemand.Bundle
	}{
		"it waits beside unchanged cards": {want: gpus(8)},
		"nothing runs on the node, so all of each card is free": {
			node: func(n *raydemand.Node, _ time.Duration) { n.Status = raydemand.Idle }},
		"one card is what its sum says": {node: func(n *raydemand.Node, _ time.Duration) { n.Total, n.Available = gpus(10), gpus(9) }},
		"many of what is no card are what their sum says": {node: func(n *raydemand.Node, _ time.Duration) {
			n.Total = raydemand.Bundle{"GPU": raydemand.One, "CPU": raydemand.Whole(8)}
		}},
		"the cards have changed": {node: func(n *raydemand.Node, at time.Duration) {
			if at > 0 {
				n.Available = gpus(15)
			}
		}},
		"what is no card may change": {want: gpus(8), node: func(n *raydemand.Node, at time.Duration) {
			n.Available = raydemand.Bundle{"GPU": tenths(14), "CPU": raydemand.Amount(at.Seconds()) + raydemand.One}
		}},
		"it did not wait in every reading": {demand: func(at time.Duration) raydemand.Demand {
			if at == patience/2 {
				return raydemand.Demand{}
			}
			return waits
		}},
		"it asks for more than is free in sum": {demand: func(time.Duration) raydemand.Demand {
			return ask(raydemand.Request{Bundle: gpus(15), Count: 1})
		}},
		"it asks for no card": {demand: func(time.Duration) raydemand.Demand {
			return ask(raydemand.Request{Bundle: raydemand.Bundle{"CPU": 0, "GPU": 0}, Count: 1})
		}},
		"it is wanted elsewhere": {demand: func(time.Duration) raydemand.Demand {
			return ask(raydemand.Request{Bundle: gpus(8), Count: 1, Selectors: []raydemand.Selector{onZone("b")}})
		}},
		"it may fall back to here": {want: gpus(8), demand: func(time.Duration) raydemand.Demand {
			return ask(raydemand.Request{Bundle: gpus(8), Count: 1, Selectors: []raydemand.Selector{onZone("b"), onZone("a")}})
		}},
		"the least of several": {want: gpus(7), demand: func(time.Duration) raydemand.Demand {
			return ask(raydemand.Request{Bundle: gpus(9), Count: 1}, raydemand.Request{Bundle: gpus(7), Count: 1}, raydemand.Request{Bundle: gpus(8), Count: 1})
		}},
		"each kind of card for itself": {want: raydemand.Bundle{"GPU": tenths(8), "TPU": tenths(7), "NPU": tenths(9)}, node: func(n *raydemand.Node, _ time.Duration) {
			n.Total = raydemand.Bundle{"GPU": tenths(20), "TPU": tenths(20), "NPU": tenths(20)}
			n.Available = raydemand.Bundle{"GPU": tenths(14), "TPU": tenths(14), "NPU": tenths(14)}
		}, demand: func(time.Duration) raydemand.Demand {
			return ask(raydemand.Request{Bundle: gpus(8), Count: 1}, raydemand.Request{Bundle: raydemand.Bundle{"TPU": tenths(7), "NPU": tenths(9)}, Count: 1})
		}},
		"a bundle of a gang is wanted elsewhere": {demand: func(time.Duration) raydemand.Demand {
			return raydemand.Demand{Gangs: []raydemand.Gang{{ID: "g", Bundles: []raydemand.Bundle{gpus(8)}, BundleSelectors: []raydemand.Selector{onZone("b")}}}}
		}},
		"one bundle of a gang has no selector": {want: gpus(6), demand: func(time.Duration) raydemand.Demand {
			return raydemand.Demand{Gangs: []raydemand.Gang{{ID: "g", Bundles: []raydemand.Bundle{gpus(5), gpus(6)}, BundleSelectors: []raydemand.Selector{onZone("b")}}}}
		}},
		"one gang goes and an equal one comes": {demand: func(at time.Duration) raydemand.Demand {
			return raydemand.Demand{Gangs: []raydemand.Gang{{ID: at.String(), Bundles: []raydemand.Bundle{gpus(8)}}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var r refusals
			start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			n := node
			for _, at := range []time.Duration{0, patience / 2, patience} {
				n, demand := node, waits
				if c.node != nil {
					c.node(&n, at)
				}
				if c.demand != nil {
					demand = c.demand(at)
				}
				r.observe(start.Add(at), []raydemand.Node{n}, demand)
			}
			if c.node != nil {
				c.node(&n, patience)
			}
			for range 10 { // whatever the order of the map
				if got := r.of(&n, start.Add(patience)); !got.Equal(c.want) {
					t.Fatalf("refused %v, want %v", got, c.want)
				}
			}
		})
	}
}
