package landing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

func TestATermSelectsPodsByLabelsAndNamespaces(t *testing.T) {
	const name = "kubernetes.io/metadata.name"
	in := func(key, value string) landing.PodSelector {
		return landing.PodSelector{Requirements: []landing.Requirement{{Key: key, Operator: "In", Values: []string{value}}}}
	}
	other := &landing.Neighbors{Namespace: "data", Labels: map[string]string{"app": "cache"}}
	cache, ml, data, team := in("app", "cache"), in(name, "ml"), in(name, "data"), in("team", "x")
	tests := []struct {
		name   string
		term   landing.PodTerm
		repels bool
	}{
		{"another namespace", landing.PodTerm{Selector: cache}, false},
		{"its namespace by name", landing.PodTerm{Selector: cache, Namespaces: []string{"x", "data"}}, true},
		{"other labels", landing.PodTerm{Selector: in("app", "web"), Namespaces: []string{"data"}}, false},
		{"all namespaces", landing.PodTerm{Selector: cache, NamespaceSelector: &landing.PodSelector{}}, true},
		{"all pods of all namespaces", landing.PodTerm{NamespaceSelector: &landing.PodSelector{}}, true},
		{"no selector", landing.PodTerm{Selector: landing.PodSelector{Nothing: true}, NamespaceSelector: &landing.PodSelector{}}, false},
		{"the namespace by its label", landing.PodTerm{Selector: cache, NamespaceSelector: &data}, true},
		{"another one by its label", landing.PodTerm{Selector: cache, NamespaceSelector: &ml}, false},
		{"by labels of namespaces that are unknown", landing.PodTerm{Selector: cache, NamespaceSelector: &team}, true},
		{"by one that is not its name", landing.PodTerm{Selector: cache, NamespaceSelector: &landing.PodSelector{Requirements: append(team.Requirements, ml.Requirements...)}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			own := &landing.Neighbors{Namespace: "ml", Apart: []landing.PodTerm{test.term}}
			if got := own.Refuses(other); got != test.repels || other.Refuses(own) != got {
				t.Errorf("keeps it away: %t, want %t in both directions", got, test.repels)
			}
		})
	}
}

func selecting(key, value string) landing.PodSelector {
	return landing.PodSelector{Requirements: []landing.Requirement{{Key: key, Operator: "In", Values: []string{value}}}}
}

func TestTermsNameTheKindsThatTheySelect(t *testing.T) {
	const group = "ray.io/group"
	gpu := &landing.Neighbors{Namespace: "ml", Labels: map[string]string{group: "gpu", "node-type": "worker"},
		Apart: []landing.PodTerm{{Selector: selecting(group, "gpu")}, {Selector: selecting("app", "cache"), Namespaces: []string{"data"}}}}
	cpu := &landing.Neighbors{Namespace: "ml", Labels: map[string]string{group: "cpu", "node-type": "worker"}}
	cache := func(pod string) *landing.Neighbors {
		return &landing.Neighbors{Namespace: "data", Labels: map[string]string{"app": "cache", "pod": pod}}
	}
	others := []*landing.Neighbors{
		{Namespace: "data", Labels: map[string]string{"app": "web"}}, cache("cache-0"), cache("cache-1"),
		{Namespace: "ml", Labels: map[string]string{"app": "quiet"},
			Apart: []landing.PodTerm{{Selector: selecting(group, "cpu")}}},
	}
	pods := []landing.Pod{{Name: "gpu"}, {Name: "cpu"}}
	kinds := landing.Constrain(pods, []*landing.Neighbors{gpu, cpu}, others)
	if diff := cmp.Diff([]string{"", "data/0", "data/0", "ml/1"}, kinds); diff != "" {
		t.Errorf("kinds of the others (-want +got):\n%s", diff)
	}
	want := []landing.Pod{
		{Name: "gpu", Apart: []string{"gpu", "data/0"}},
		{Name: "cpu", Apart: []string{"ml/1"}},
	}
	if diff := cmp.Diff(want, pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestRulesBetweenPodsBoundTheirPlaces(t *testing.T) {
	one := func(name string, change func(*landing.Pod)) landing.Pod {
		pod := landing.Pod{Name: name, Requests: free("cpu", 1)}
		if change != nil {
			change(&pod)
		}
		return pod
	}
	apart := func(pods ...string) func(*landing.Pod) { return func(p *landing.Pod) { p.Apart = pods } }
	place := func(nodes int64, cpu int) landing.Place { return landing.Place{Nodes: &nodes, Free: free("cpu", cpu)} }
	pool := func(cpu int) landing.Place { return landing.Place{New: true, Free: free("cpu", cpu)} }
	anySize := landing.Place{New: true, AnySize: true, Free: free("cpu", 100)}
	holding := func(p landing.Place, name string, n int64) landing.Place {
		p.Holds = map[string]int64{name: n}
		return p
	}
	tests := []struct {
		name   string
		pods   []landing.Pod
		places []landing.Place
		adds   []add
	}{
		{"one pod on a node", []landing.Pod{one("a", apart("a"))}, []landing.Place{place(5, 8)}, []add{{0, 99, 5}}},
		{"one pod on each new node", []landing.Pod{one("a", apart("a"))}, []landing.Place{pool(8)}, []add{{0, 99, 99}}},
		{"one pod on each node of any size", []landing.Pod{one("a", apart("a"))}, []landing.Place{anySize}, []add{{0, 999, 100}}},
		{"a node where one is already", []landing.Pod{one("a", apart("a"))}, []landing.Place{holding(place(2, 8), "a", 1), place(1, 8)}, []add{{0, 99, 1}}},
		{"two kinds on different nodes", []landing.Pod{one("a", apart("b")), one("b", nil)}, []landing.Place{place(2, 3)}, []add{{0, 4, 4}, {1, 9, 0}}},
		{"the other one's rule counts too", []landing.Pod{one("a", apart("b")), one("b", nil)}, []landing.Place{place(2, 3)}, []add{{1, 1, 1}, {0, 9, 3}, {1, 9, 2}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			state := onAll(test.pods, test.places...).Empty()
			for i, a := range test.adds {
				room := state.Room(a.pod)
				if got := state.Take(a.pod, int64(a.n)); got != int64(a.placed) || got != min(room, int64(a.n)) {
					t.Errorf("step %d: placed %d of %d pods %s, want %d; room was %d", i, got, a.n, test.pods[a.pod].Name, a.placed, room)
				}
			}
		})
	}
}
