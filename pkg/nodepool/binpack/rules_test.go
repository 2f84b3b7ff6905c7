package binpack_test

import (
	"fmt"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/binpack"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

func TestRulesBetweenPodsBoundTheirPlaces(t *testing.T) {
	one := func(name string, change func(*binpack.Pod)) binpack.Pod {
		pod := binpack.Pod{Name: name, Requests: free("cpu", 1)}
		if change != nil {
			change(&pod)
		}
		return pod
	}
	apart := func(key string, pods ...string) func(*binpack.Pod) {
		return func(p *binpack.Pod) { p.Apart = append(p.Apart, binpack.Affinity{TopologyKey: key, Pods: pods}) }
	}
	together := func(key string, pods ...string) func(*binpack.Pod) {
		return func(p *binpack.Pod) {
			p.Together = append(p.Together, binpack.Affinity{TopologyKey: key, Pods: pods})
		}
	}
	spread := func(key string, skew, minDomains int64, pods ...string) func(*binpack.Pod) {
		return func(p *binpack.Pod) {
			p.Spread = append(p.Spread, binpack.Spread{TopologyKey: key, MaxSkew: skew, MinDomains: minDomains, Pods: pods})
		}
	}
	const host, zone = binpack.Hostname, "topology.kubernetes.io/zone"
	place := func(nodes int64, cpu int, zones ...string) binpack.Place {
		p := binpack.Place{Nodes: &nodes, Free: free("cpu", cpu), Domains: map[string]string{}}
		for _, z := range zones {
			p.Domains[zone] = z
		}
		return p
	}
	pool := func(cpu int, zones ...string) binpack.Place {
		p := place(0, cpu, zones...)
		p.Nodes, p.New = nil, true
		return p
	}
	anySize := binpack.Place{New: true, AnySize: true, Free: free("cpu", 100)}
	holding := func(p binpack.Place, name string, n int64) binpack.Place {
		p.Holds = map[string]int64{name: n}
		return p
	}
	tainted := func(p binpack.Place, pod string) binpack.Place {
		p.Accepts, p.Counted = []string{}, []string{pod}
		return p
	}
	tests := []struct {
		name   string
		pods   []binpack.Pod
		places []binpack.Place
		adds   []add
	}{
		{"one pod on a node", []binpack.Pod{one("a", apart(host, "a"))}, []binpack.Place{place(5, 8)}, []add{{0, 99, 5}}},
		{"one pod on each new node", []binpack.Pod{one("a", apart(host, "a"))}, []binpack.Place{pool(8)}, []add{{0, 99, 99}}},
		{"one pod on each node of any size", []binpack.Pod{one("a", apart(host, "a"))}, []binpack.Place{anySize}, []add{{0, 999, 100}}},
		{"a node where one is already", []binpack.Pod{one("a", apart(host, "a"))}, []binpack.Place{holding(place(2, 8), "a", 1), place(1, 8)}, []add{{0, 99, 1}}},
		{"two kinds on different nodes", []binpack.Pod{one("a", apart(host, "b")), one("b", nil)}, []binpack.Place{place(2, 3)}, []add{{0, 4, 4}, {1, 9, 0}}},
		{"the other one's rule counts too", []binpack.Pod{one("a", apart(host, "b")), one("b", nil)}, []binpack.Place{place(2, 3)}, []add{{1, 1, 1}, {0, 9, 3}, {1, 9, 2}}},
		{"one pod in each zone", []binpack.Pod{one("a", apart(zone, "a"))}, []binpack.Place{place(3, 8, "x"), place(3, 8, "y")}, []add{{0, 99, 2}}},
		{"nodes without the label are in no zone", []binpack.Pod{one("a", apart(zone, "a"))}, []binpack.Place{place(3, 8, "x"), place(2, 8)}, []add{{0, 99, 17}}},
		{"beside another kind", []binpack.Pod{one("a", together(host, "b")), one("b", nil)}, []binpack.Place{place(2, 3)}, []add{{0, 9, 0}, {1, 1, 1}, {0, 9, 2}}},
		{"all in one zone", []binpack.Pod{one("a", together(zone, "a"))}, []binpack.Place{place(2, 3, "x"), place(2, 4, "y")}, []add{{0, 99, 6}}},
		{"the zone of one that is there", []binpack.Pod{one("a", together(zone, "a"))}, []binpack.Place{place(2, 3, "x"), holding(place(2, 4, "y"), "a", 1)}, []add{{0, 99, 8}}},
		{"no node is labelled", []binpack.Pod{one("a", together(zone, "a"))}, []binpack.Place{place(2, 3)}, []add{{0, 99, 0}}},
		{"spread over zones", []binpack.Pod{one("a", spread(zone, 1, 0, "a"))}, []binpack.Place{place(1, 8, "x"), place(1, 2, "y")}, []add{{0, 99, 5}}},
		{"spread over zones that grow", []binpack.Pod{one("a", spread(zone, 1, 0, "a"))}, []binpack.Place{place(1, 1, "x"), place(1, 2, "y"), pool(8, "x"), pool(8, "y")}, []add{{0, 20000, 20000}}},
		{"a full zone", []binpack.Pod{one("a", spread(zone, 2, 0, "a"))}, []binpack.Place{place(1, 8, "x"), place(1, 0, "y")}, []add{{0, 99, 2}}},
		{"a zone of nodes with a taint", []binpack.Pod{one("a", spread(zone, 1, 0, "a"))}, []binpack.Place{place(1, 8, "x"), tainted(place(1, 8, "y"), "a")}, []add{{0, 99, 1}}},
		{"too few zones", []binpack.Pod{one("a", spread(zone, 2, 3, "a"))}, []binpack.Place{place(1, 8, "x"), place(1, 8, "y")}, []add{{0, 99, 4}}},
		{"a new zone is filled first", []binpack.Pod{one("a", spread(zone, 1, 0, "a"))}, []binpack.Place{holding(place(1, 1, "x"), "a", 3), pool(8, "y")}, []add{{0, 6, 6}}},
		{"spread over nodes", []binpack.Pod{one("a", spread(host, 1, 0, "a"))}, []binpack.Place{place(3, 8), place(1, 2)}, []add{{0, 99, 11}}},
		{"spread over new nodes", []binpack.Pod{one("a", spread(host, 1, 0, "a"))}, []binpack.Place{place(1, 2), pool(8)}, []add{{0, 3000, 3000}}},
		{"spread counts another kind", []binpack.Pod{one("a", spread(zone, 1, 0, "a", "b")), one("b", nil)}, []binpack.Place{place(1, 8, "x"), place(1, 8, "y")},
			[]add{{1, 5, 5}, {0, 1, 1}}},
		{"Karpenter may choose any zone", []binpack.Pod{one("a", spread(zone, 1, 0, "a"))}, []binpack.Place{anySize}, []add{{0, 999, 100}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			state := onAll(test.pods, test.places...).Empty()
			for i, a := range test.adds {
				room := state.Room(a.pod)
				if got := state.Add(a.pod, int64(a.n)); got != int64(a.placed) || got != min(room, int64(a.n)) {
					t.Errorf("step %d: placed %d of %d pods %s, want %d; room was %d", i, got, a.n, test.pods[a.pod].Name, a.placed, room)
				}
			}
		})
	}
}

func TestRulesWithoutABoundLeaveRoomUnbounded(t *testing.T) {
	pods := []binpack.Pod{{Name: "a", Requests: free("cpu", 1), Spread: []binpack.Spread{{TopologyKey: "zone", MaxSkew: 1, Pods: []string{"a"}}}}}
	var places []binpack.Place
	for i := range 3 {
		places = append(places, binpack.Place{New: true, Free: free("cpu", 8), Domains: map[string]string{"zone": fmt.Sprint(i)}})
	}
	state := onAll(pods, places...).Empty()
	state.Add(0, 10)
	if room := state.Room(0); room != podfit.Unbounded {
		t.Errorf("room for %d pods", room)
	}
}
