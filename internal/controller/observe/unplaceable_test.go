package observe

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestOnlyWhatHasWaitedBesideUnchangedCardsIsRefused(t *testing.T) {
	const patience = placementGrace
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
			var r Unplaceable
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
				r.Observe(start.Add(at), []raydemand.Node{n}, demand)
			}
			if c.node != nil {
				c.node(&n, patience)
			}
			for range 10 { // whatever the order of the map
				if got := r.Of(&n, start.Add(patience)); !got.Equal(c.want) {
					t.Fatalf("refused %v, want %v", got, c.want)
				}
			}
		})
	}
}
