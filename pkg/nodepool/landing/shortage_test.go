package landing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAShortageNamesWhatKeepsPodsFromNodes(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	gpus := func(n int64) landing.Quantities {
		return landing.Quantities{gpu: raydemand.Whole(n), "cpu": raydemand.Whole(8)}
	}
	place := func(node string, count, free int64, change ...func(*landing.Place)) landing.Place {
		p := landing.Place{Node: node, Nodes: &count, Free: gpus(free), Accepts: []string{"a"}}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	pod := func(change func(*landing.Pod)) landing.Pod {
		p := landing.Pod{Name: "a", Requests: landing.Quantities{gpu: raydemand.Whole(4), "cpu": raydemand.One}}
		change(&p)
		return p
	}
	whole := func(n int64) *int64 { return &n }
	tests := []struct {
		name   string
		pod    landing.Pod
		places []landing.Place
		placed int64
		want   landing.Shortage
	}{
		{"all taken", pod(func(*landing.Pod) {}), []landing.Place{place("n", 2, 8)}, 4,
			landing.Shortage{Resource: gpu, Total: raydemand.Whole(16), Need: raydemand.Whole(4)}},
		{"what is left is on several nodes", pod(func(*landing.Pod) {}), []landing.Place{place("n", 2, 6), place("m", 1, 3)}, 2,
			landing.Shortage{Resource: gpu, Left: raydemand.Whole(7), Total: raydemand.Whole(15), Need: raydemand.Whole(4)}},
		{"the CPU", pod(func(p *landing.Pod) { p.Requests["cpu"] = raydemand.Whole(5) }), []landing.Place{place("n", 2, 8)}, 2,
			landing.Shortage{Resource: "cpu", Left: raydemand.Whole(6), Total: raydemand.Whole(16), Need: raydemand.Whole(5)}},
		{"no card", pod(func(p *landing.Pod) { p.Cards = &landing.CardRequest{Memory: 9} }),
			[]landing.Place{place("n", 1, 8, func(p *landing.Place) { p.Cards = []landing.Card{{Memory: whole(8)}} })}, 0, landing.Shortage{Cards: true}},
		{"one on each node", pod(func(p *landing.Pod) {
			p.Apart = []string{"a"}
		}), []landing.Place{place("n", 2, 8)}, 2, landing.Shortage{Rule: "podAntiAffinity or a port of the node with topologyKey kubernetes.io/hostname"}},
		{"spread", pod(func(p *landing.Pod) {
			p.Spread = []landing.Spread{{MaxSkew: 1, Pods: []string{"a"}}}
		}), []landing.Place{place("n", 1, 40), place("m", 1, 1)}, 1,
			landing.Shortage{Rule: "topologySpreadConstraints of maxSkew 1 with topologyKey kubernetes.io/hostname"}},
		{"no node accepts it", pod(func(*landing.Pod) {}), []landing.Place{place("n", 2, 8, func(p *landing.Place) { p.Accepts = nil })}, 0, landing.Shortage{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			on := landing.New([]landing.Pod{test.pod}, test.places).All()
			if placed := on.Take(0, 99); placed != test.placed {
				t.Fatalf("%d pods have a place, want %d", placed, test.placed)
			}
			if diff := cmp.Diff(test.want, on.Shortage(0)); diff != "" {
				t.Errorf("shortage (-want +got):\n%s", diff)
			}
		})
	}
}
