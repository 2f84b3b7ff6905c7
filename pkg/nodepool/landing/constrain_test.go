package landing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

func selecting(key, value string) landing.PodSelector {
	return landing.PodSelector{Requirements: []landing.Requirement{{Key: key, Operator: "In", Values: []string{value}}}}
}

func TestTermsNameTheKindsThatTheySelect(t *testing.T) {
	const group = "ray.io/group"
	gpu := &landing.Neighbors{Namespace: "ml", Labels: map[string]string{group: "gpu", "node-type": "worker"},
		Apart:  []landing.PodTerm{{Selector: selecting(group, "gpu")}, {Selector: selecting("app", "cache"), Namespaces: []string{"data"}}},
		Spread: []landing.SpreadTerm{{MaxSkew: 2, MinDomains: 3, Selector: selecting("node-type", "worker")}}}
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
		{Name: "gpu", Apart: []string{"gpu", "data/0"}, Spread: []landing.Spread{{MaxSkew: 2, MinDomains: 3, Pods: []string{"gpu", "cpu"}}}},
		{Name: "cpu", Apart: []string{"ml/1"}},
	}
	if diff := cmp.Diff(want, pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestAPodOnANodeKeepsOthersAway(t *testing.T) {
	own := &landing.Neighbors{Namespace: "ml", Labels: map[string]string{"app": "ray"}}
	guard := &landing.Neighbors{Namespace: "ml", Apart: []landing.PodTerm{{Selector: selecting("app", "ray")}}}
	pods := []landing.Pod{{Name: "a", Requests: free("cpu", 1)}}
	kinds := landing.Constrain(pods, []*landing.Neighbors{own}, []*landing.Neighbors{guard})
	guarded := landing.Place{Nodes: of[int64](1), Free: free("cpu", 8), Holds: map[string]int64{kinds[0]: 1}}
	open := landing.Place{Nodes: of[int64](1), Free: free("cpu", 3)}
	if room := onAll(pods, guarded, open).Empty().Room(0); room != 3 {
		t.Errorf("room for %d pods, want 3", room)
	}
}
