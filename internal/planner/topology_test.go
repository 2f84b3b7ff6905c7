package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// A label can have one value per node. Values without room are not tried, so they do not use up the limit of the
// search.
func TestAGangIsTriedOnlyWhereItHasRoomInSum(t *testing.T) {
	var nodes []string
	for i := range 3 * 64 {
		free := 7 // of 8, so that no node has room for the gang's two bundles of 4 ...
		if i == 3*64-1 {
			free = 8 // ... but the last
		}
		nodes = append(nodes, fmt.Sprintf(`{"pod": "p%03d", "group": "a", "state": "RUNNING", "labels": {"node": "%03d"}, "total": {"GPU": 8}, "available": {"GPU": %d}}`, i, i, free))
	}
	s := plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"GPU": 8}, "maxReplicas": 999}], "nodes": [`+strings.Join(nodes, ",")+`],
		"pendingGangRequests": [{"id": "g", "strategy": "PACK", "topologyLabel": "node", "bundles": [{"GPU": 4}, {"GPU": 4}]}]}`)
	if diff := cmp.Diff(decision{Launch: map[string]int{}}, decisionOf(Compute(s, Policy{}))); diff != "" {
		t.Error(diff)
	}
}

func TestTheAlternativesOfAGangAreTriedInOrderEachByItsOwnLabels(t *testing.T) {
	const gang = `{"groups": [{"name": "a", "resources": {"GPU": 4}, "maxReplicas": %d, "labels": {"zone": "a"}}, {"name": "b", "resources": {"GPU": 4}, "maxReplicas": %d, "labels": {"zone": "b"}},
		{"name": "c", "resources": {"CPU": 8}, "maxReplicas": %d, "labels": {"zone": "c"}}],
		"pendingGangRequests": [{"id": "g", "strategy": "PACK", "bundles": [{"GPU": 4}, {"GPU": 4}], "bundleLabelSelectors": [{"zone": "a"}, {"zone": "a"}],
		"fallbackBundles": [[{"GPU": 4}, {"GPU": 4}], [{"CPU": 8}], [{"CPU": 1}]], "fallbackBundleLabelSelectors": [[{"zone": "b"}, {"zone": "b"}], [{"zone": "c"}], []]}]}`
	for _, c := range []struct {
		a, b, c int
		want    decision
	}{
		{2, 2, 1, decision{Launch: map[string]int{"a": 2}}},
		{1, 2, 1, decision{Launch: map[string]int{"b": 2}}},
		{1, 1, 1, decision{Launch: map[string]int{"c": 1}}},
		{1, 1, 0, decision{Launch: map[string]int{}, Unmet: []string{Capped}}},
	} {
		s := plannertest.Read(t, fmt.Sprintf(gang, c.a, c.b, c.c))
		if diff := cmp.Diff(c.want, decisionOf(Compute(s, Policy{}))); diff != "" {
			t.Errorf("with maxima %d, %d, %d: %s", c.a, c.b, c.c, diff)
		}
		again := plannertest.Read(t, asJSON(t, s))
		if diff := cmp.Diff(asJSON(t, s), asJSON(t, again)); diff != "" {
			t.Errorf("written and read again: %s", diff)
		}
	}
}

// TestATopologyGangThatIsServedFitsWithinOneValue keeps only one value's nodes of an applied plan and plans again: what
// was served must be served there, without another launch.
func TestATopologyGangThatIsServedFitsWithinOneValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		s.Requests, s.Constraint, s.KeptResources = nil, nil, nil
		s.Gangs = s.Gangs[:min(len(s.Gangs), 1)]
		if len(s.Gangs) == 0 || s.Gangs[0].TopologyLabel == "" {
			return
		}
		for i := range s.Groups {
			s.Groups[i].NumOfHosts, s.Groups[i].Replicas = 1, nil // hosts that return are not in the list of nodes
		}
		plan := Compute(s, Policy{})
		if len(plan.InfeasibleGangRequests) > 0 {
			return
		}
		all := applied(s, plan, 0)
		for _, zone := range []string{"a", "b"} {
			within := all
			within.MaxWorkers = nil // otherwise pods above a minimum would be stopped here
			within.Nodes = slices.DeleteFunc(slices.Clone(all.Nodes), func(n Node) bool { return n.Labels["zone"] != zone })
			within.Groups = slices.Clone(all.Groups)
			for i := range within.Groups {
				within.Groups[i].Replicas, within.Groups[i].Min, within.Groups[i].Max, within.Groups[i].Closed = nil, 0, 100, "closed"
			}
			if len(Compute(within, Policy{}).InfeasibleGangRequests) == 0 {
				return
			}
		}
		t.Errorf("the gang is called served and fits in no zone:\n%s\n%s", plannertest.Compact(s), plannertest.Compact(plan))
	})
}
