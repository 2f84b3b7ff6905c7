package observe

import (
	"fmt"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// reading is one State as a line: what waits, and what each node has in total and free.
type reading struct {
	after   time.Duration
	waiting []raydemand.Request
	nodes   []raydemand.Node
	want    string
}

func waits1(count int64, bundle raydemand.Bundle, selectors ...raydemand.Selector) raydemand.Request {
	return raydemand.Request{Bundle: bundle, Count: count, Selectors: selectors}
}

func nodeWith(name string, total, available raydemand.Bundle) raydemand.Node {
	return raydemand.Node{ID: nodeID(name), Instance: name, Status: raydemand.Running, Total: total, Available: available}
}

func TestLagSubtractsWhatWasPlacedAMomentAgo(t *testing.T) {
	zone := raydemand.NewSelector(raydemand.Constraint{Key: "zone", Op: raydemand.In, Values: []string{"a"}})
	placed := nodeWith("n", gpu(1), gpu(0))
	placed.PlacedLabels = map[string]string{"_PG_aa": ""}
	for name, readings := range map[string][]reading{
		"growing demand passes at once where nothing was placed": {
			{waiting: nil, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[]"},
			{after: 100 * time.Millisecond, waiting: []raydemand.Request{waits1(3, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[{GPU 1}×3]"},
		},
		"the first reading has nothing to compare with": {
			{waiting: []raydemand.Request{waits1(2, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[{GPU 1}×2]"},
		},
		"a stale report is corrected until the pending count falls": {
			{waiting: []raydemand.Request{waits1(2, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(1))}, want: "[{GPU 1}×2]"},
			{after: 100 * time.Millisecond, waiting: []raydemand.Request{waits1(2, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[{GPU 1}×1]"},
			{after: 900 * time.Millisecond, waiting: []raydemand.Request{waits1(1, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[{GPU 1}×1]"},
		},
		"a count that falls in the same reading needs no credit": {
			{waiting: []raydemand.Request{waits1(2, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(1))}, want: "[{GPU 1}×2]"},
			{after: 100 * time.Millisecond, waiting: []raydemand.Request{waits1(1, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[{GPU 1}×1]"},
		},
		"a credit ends with the window": {
			{waiting: []raydemand.Request{waits1(1, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(1))}, want: "[{GPU 1}×1]"},
			{after: 100 * time.Millisecond, waiting: []raydemand.Request{waits1(1, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[]"},
			{after: 1400 * time.Millisecond, waiting: []raydemand.Request{waits1(1, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[]"},
			{after: 200 * time.Millisecond, waiting: []raydemand.Request{waits1(1, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[{GPU 1}×1]"},
		},
		"a node that has just joined counts as free before": {
			{waiting: []raydemand.Request{waits1(1, gpu(1))}, nodes: nil, want: "[{GPU 1}×1]"},
			{after: 100 * time.Millisecond, waiting: []raydemand.Request{waits1(1, gpu(1))}, nodes: []raydemand.Node{nodeWith("new", gpu(1), gpu(0))}, want: "[]"},
		},
		"another shape earns no credit": {
			{waiting: []raydemand.Request{waits1(1, gpu(2))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(1))}, want: "[{GPU 2}×1]"},
			{after: 100 * time.Millisecond, waiting: []raydemand.Request{waits1(1, gpu(2))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[{GPU 2}×1]"},
		},
		"a node that the selector does not want earns no credit": {
			{waiting: []raydemand.Request{waits1(1, gpu(1), zone)}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(1))}, want: "[{GPU 1}×1]"},
			{after: 100 * time.Millisecond, waiting: []raydemand.Request{waits1(1, gpu(1), zone)}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(0))}, want: "[{GPU 1}×1]"},
		},
		"what a new gang took earns no credit": {
			{waiting: []raydemand.Request{waits1(1, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(1), gpu(1))}, want: "[{GPU 1}×1]"},
			{after: 100 * time.Millisecond, waiting: []raydemand.Request{waits1(1, gpu(1))}, nodes: []raydemand.Node{placed}, want: "[{GPU 1}×1]"},
		},
		"the larger shape explains the use first": {
			{waiting: []raydemand.Request{waits1(1, gpu(1)), waits1(1, gpu(2))}, nodes: []raydemand.Node{nodeWith("n", gpu(2), gpu(2))}, want: "[{GPU 1}×1 {GPU 2}×1]"},
			{after: 100 * time.Millisecond, waiting: []raydemand.Request{waits1(1, gpu(1)), waits1(1, gpu(2))}, nodes: []raydemand.Node{nodeWith("n", gpu(2), gpu(0))}, want: "[{GPU 1}×1]"},
		},
		"ten small ones are counted, not one": {
			{waiting: []raydemand.Request{waits1(30, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(10), gpu(10))}, want: "[{GPU 1}×30]"},
			{after: 100 * time.Millisecond, waiting: []raydemand.Request{waits1(30, gpu(1))}, nodes: []raydemand.Node{nodeWith("n", gpu(10), gpu(0))}, want: "[{GPU 1}×20]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l PlacementLag
			now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			for i, r := range readings {
				now = now.Add(r.after)
				got := l.Correct(now, raydemand.State{Nodes: r.nodes, Demand: raydemand.Demand{Requests: r.waiting}})
				if text := shapesText(got); text != r.want {
					t.Errorf("reading %d: %s, want %s", i, text, r.want)
				}
			}
		})
	}
}

func shapesText(requests []raydemand.Request) string {
	texts := make([]string, 0, len(requests))
	for _, r := range requests {
		texts = append(texts, fmt.Sprintf("%v×%d", r.Bundle, r.Count))
	}
	return fmt.Sprint(texts)
}
