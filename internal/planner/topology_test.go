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

// racks has three groups of the same pods: one on each of two racks, and one without a rack label.
const racks = `"groups": [
	{"name": "none", "resources": {"GPU": 8}, "maxReplicas": 9},
	{"name": "r1", "resources": {"GPU": 8}, "maxReplicas": 3, "labels": {"rack": "1"}},
	{"name": "r2", "resources": {"GPU": 8}, "maxReplicas": 4, "labels": {"rack": "2"}}]`

func TestATopologyGangLandsWithinOneValueOfItsLabel(t *testing.T) {
	const half = `{"pod": "%s", "group": "%s", "state": "RUNNING", "labels": {"rack": "%s"}, "total": {"GPU": 8}, "available": {"GPU": %d}}`
	for name, c := range map[string]struct {
		nodes, gangs string
		want         decision
		unmet        string
	}{
		"on groups whose pods will carry the label": {
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}, {"GPU": 8}, {"GPU": 8}, {"GPU": 8}]}`,
			want:  decision{Launch: map[string]int{"r2": 4}},
		},
		"on nodes that are there and the missing one beside them": {
			nodes: fmt.Sprintf(half+","+half, "x", "r2", "2", 8, "y", "r2", "2", 8),
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}, {"GPU": 8}, {"GPU": 8}]}`,
			want:  decision{Launch: map[string]int{"r2": 1}},
		},
		"not spread over two racks that have half each": {
			nodes: fmt.Sprintf(half+","+half, "x", "r1", "1", 8, "y", "r2", "2", 8),
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}, {"GPU": 8}]}`,
			want:  decision{Launch: map[string]int{"r1": 1}},
		},
		"strictly spread over nodes of one rack": {
			gangs: `{"id": "a", "strategy": "STRICT_SPREAD", "topologyLabel": "rack", "bundles": [{"GPU": 1}, {"GPU": 1}, {"GPU": 1}]}`,
			want:  decision{Launch: map[string]int{"r1": 3}},
		},
		"where its own selector allows": {
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}, {"GPU": 8}], "bundleLabelSelectors": [{"rack": "!1"}, {}]}`,
			want:  decision{Launch: map[string]int{"r2": 2}},
		},
		"where the rest of it lies already": {
			nodes: `{"pod": "x", "group": "r1", "state": "RUNNING", "labels": {"rack": "1"}, "placedLabels": {"_PG_a": ""}, "total": {"GPU": 8}, "available": {}},` +
				fmt.Sprintf(half, "y", "r2", "2", 8),
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}]}`,
			want:  decision{Launch: map[string]int{"r1": 1}},
		},
		"the rest waits for the rack that holds the others": {
			nodes: `{"pod": "x", "group": "r1", "state": "RUNNING", "labels": {"rack": "1"}, "placedLabels": {"_PG_a": ""}, "total": {"GPU": 8}, "available": {}}`,
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}, {"GPU": 8}, {"GPU": 8}]}`,
			want:  decision{Launch: map[string]int{}, Unmet: []string{Capped}},
			unmet: "its other bundles are on rack=1, which has no room for the remaining 3: group r1 can add only 2 pods: its maximum is 3 (has 1); " +
				"group none: it lacks the gang's topology label rack; group r2: label rack is 2",
		},
		"a rack of which no new node could hold the rest": {
			nodes: `{"pod": "x", "group": "none", "state": "RUNNING", "labels": {"rack": "3"}, "placedLabels": {"_PG_a": ""}, "total": {"GPU": 4}, "available": {}}`,
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}]}`,
			want:  decision{Launch: map[string]int{}, Unmet: []string{Capped}},
			unmet: "its other bundles are on rack=3, where no node and no group can hold the rest: group none: it lacks the gang's topology label rack; group r1: label rack is 1; " +
				"group r2: label rack is 2",
		},
		"the others lie on a node without the label": {
			nodes: `{"pod": "x", "group": "none", "state": "RUNNING", "placedLabels": {"_PG_a": ""}, "total": {"GPU": 8}, "available": {}}`,
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}]}`,
			want:  decision{Launch: map[string]int{}, Unmet: []string{Capped}},
			unmet: "the nodes that hold the gang's other bundles lack its topology label rack",
		},
		"too large for any one rack": {
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}, {"GPU": 8}, {"GPU": 8}, {"GPU": 8}, {"GPU": 8}]}`,
			want:  decision{Launch: map[string]int{}, Unmet: []string{Capped}},
			unmet: "no value of label rack has room for all 5 bundles: group r1 can add only 3 pods: its maximum is 3 (has 0); " +
				"group r2 can add only 4 pods: its maximum is 4 (has 0); group none: it lacks the gang's topology label rack",
		},
		"of a bundle that only nodes without the label could hold": {
			nodes: `{"pod": "x", "group": "none", "state": "RUNNING", "total": {"GPU": 16}, "available": {"GPU": 16}}`,
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 16}]}`,
			want:  decision{Launch: map[string]int{}, Unmet: []string{Impossible}},
			unmet: "no value of label rack has nodes or groups for every bundle: group none: too small: needs 16 GPU, has 8; " +
				"group r1: too small: needs 16 GPU, has 8; group r2: too small: needs 16 GPU, has 8",
		},
		"two of them never hold half of what each needs": {
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}, {"GPU": 8}, {"GPU": 8}]},
			        {"id": "b", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}, {"GPU": 8}, {"GPU": 8}]},
			        {"id": "c", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 8}, {"GPU": 8}, {"GPU": 8}]}`,
			want: decision{Launch: map[string]int{"r1": 3, "r2": 3}, Unmet: []string{Capped}},
		},
		"a fallback within one rack too": {
			gangs: `{"id": "a", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 16}], "fallbackBundles": [[{"GPU": 8}, {"GPU": 8}]]}`,
			want:  decision{Launch: map[string]int{"r1": 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, `{"launchConfigCheckDisabled": true, `+racks+`, "nodes": [`+c.nodes+`], "pendingGangRequests": [`+c.gangs+`]}`), Policy{})
			if diff := cmp.Diff(c.want, decisionOf(plan)); diff != "" {
				t.Error(diff)
			}
			if c.unmet != "" {
				if diff := cmp.Diff(c.unmet, plan.InfeasibleGangRequests[0].Reason.Message); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

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
