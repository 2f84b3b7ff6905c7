package podfit_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestATermSelectsPodsByLabelsAndNamespaces(t *testing.T) {
	const name = "kubernetes.io/metadata.name"
	in := func(key, value string) podfit.PodSelector {
		return podfit.PodSelector{Requirements: []podfit.Requirement{{Key: key, Operator: "In", Values: []string{value}}}}
	}
	other := &podfit.Neighbors{Namespace: "data", Labels: map[string]string{"app": "cache"}}
	cache, ml, data, team := in("app", "cache"), in(name, "ml"), in(name, "data"), in("team", "x")
	tests := []struct {
		name   string
		term   podfit.PodTerm
		repels bool
	}{
		{"another namespace", podfit.PodTerm{Selector: cache}, false},
		{"its namespace by name", podfit.PodTerm{Selector: cache, Namespaces: []string{"x", "data"}}, true},
		{"other labels", podfit.PodTerm{Selector: in("app", "web"), Namespaces: []string{"data"}}, false},
		{"all namespaces", podfit.PodTerm{Selector: cache, NamespaceSelector: &podfit.PodSelector{}}, true},
		{"all pods of all namespaces", podfit.PodTerm{NamespaceSelector: &podfit.PodSelector{}}, true},
		{"no selector", podfit.PodTerm{Selector: podfit.PodSelector{Nothing: true}, NamespaceSelector: &podfit.PodSelector{}}, false},
		{"the namespace by its label", podfit.PodTerm{Selector: cache, NamespaceSelector: &data}, true},
		{"another one by its label", podfit.PodTerm{Selector: cache, NamespaceSelector: &ml}, false},
		{"by labels of namespaces that are unknown", podfit.PodTerm{Selector: cache, NamespaceSelector: &team}, true},
		{"by one that is not its name", podfit.PodTerm{Selector: cache, NamespaceSelector: &podfit.PodSelector{Requirements: append(team.Requirements, ml.Requirements...)}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			own := &podfit.Neighbors{Namespace: "ml", Apart: []podfit.PodTerm{test.term}}
			if got := own.Refuses(other); got != test.repels || other.Refuses(own) != got {
				t.Errorf("keeps it away: %t, want %t in both directions", got, test.repels)
			}
		})
	}
}

func TestANodeIsADomainByAffinityAndNotByTaints(t *testing.T) {
	tainted := node("a", labelled("pool", "x"), taintedBy("team", "ml", sharing.NoSchedule))
	spread := func(term podfit.SpreadTerm) *podfit.PodShape {
		return &podfit.PodShape{Selector: map[string]string{"pool": "x"}, Neighbors: podfit.Neighbors{Spread: []podfit.SpreadTerm{term}}}
	}
	other := node("b", labelled("pool", "y"))
	tests := []struct {
		name  string
		shape *podfit.PodShape
		node  podfit.Node
		want  bool
	}{
		{"a tainted node", spread(podfit.SpreadTerm{}), tainted, true},
		{"a tainted node, where taints are honored", spread(podfit.SpreadTerm{HonorsTaints: true}), tainted, false},
		{"another pool", spread(podfit.SpreadTerm{}), other, false},
		{"another pool, where affinity is ignored", spread(podfit.SpreadTerm{IgnoresAffinity: true}), other, true},
		{"nothing to spread", &podfit.PodShape{}, other, false},
	}
	for _, test := range tests {
		if got := test.shape.IsDomain(&test.node); got != test.want {
			t.Errorf("%s is a domain: %t, want %t", test.name, got, test.want)
		}
	}
}
