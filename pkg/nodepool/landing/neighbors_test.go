package landing_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
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

func TestANodeIsADomainByAffinityAndNotByTaints(t *testing.T) {
	tainted := node("a", labelled("pool", "x"), taintedBy("team", "ml", sharing.NoSchedule))
	spread := func(term landing.SpreadTerm) *landing.PodShape {
		return &landing.PodShape{Selector: map[string]string{"pool": "x"}, Neighbors: landing.Neighbors{Spread: []landing.SpreadTerm{term}}}
	}
	other := node("b", labelled("pool", "y"))
	tests := []struct {
		name  string
		shape *landing.PodShape
		node  landing.Node
		want  bool
	}{
		{"a tainted node", spread(landing.SpreadTerm{}), tainted, true},
		{"a tainted node, where taints are honored", spread(landing.SpreadTerm{HonorsTaints: true}), tainted, false},
		{"another pool", spread(landing.SpreadTerm{}), other, false},
		{"another pool, where affinity is ignored", spread(landing.SpreadTerm{IgnoresAffinity: true}), other, true},
		{"nothing to spread", &landing.PodShape{}, other, false},
	}
	for _, test := range tests {
		if got := landing.IsDomain(test.shape, &test.node); got != test.want {
			t.Errorf("%s is a domain: %t, want %t", test.name, got, test.want)
		}
	}
}
