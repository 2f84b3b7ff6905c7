package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// TestNodesThatExistAreReadySoonest plans for two equal groups a and b. On a's nodes are the first places, on b's the
// others; new nodes are in a pool of each.
func TestNodesThatExistAreReadySoonest(t *testing.T) {
	place := func(group string, nodes, gpus int, more string) string {
		return fmt.Sprintf(`{"pool": "%[1]s", "node": "%[1]s-%[4]d", "nodes": %[2]d, "accepts": ["%[1]s"],
			"free": {"nvidia.com/gpu": %[3]d, "pods": 9}%[5]s}`, group, nodes, gpus, len(more), more)
	}
	const empty, new = `, "empty": true`, `, "new": true`
	for name, c := range map[string]struct {
		places []string
		groups string // what else the groups have
		demand int
		want   map[string]int
		why    string // of the group that was not chosen
	}{
		"free room on existing nodes comes before new nodes": {
			places: []string{place("a", 5, 1, new), place("b", 1, 3, ""), place("b", 5, 1, new)},
			demand: 3, want: map[string]int{"b": 3},
			why: "its pods fit on nodes that exist; one of group a would need another node",
		},
		"only what fits there goes there": {
			places: []string{place("a", 5, 1, new), place("b", 1, 2, ""), place("b", 5, 1, new)},
			demand: 5, want: map[string]int{"a": 3, "b": 2},
		},
		"nodes with other pods come before empty nodes": {
			places: []string{place("a", 2, 1, empty), place("b", 2, 1, "")},
			demand: 1, want: map[string]int{"b": 1},
			why: "its pods go to nodes that hold other pods; one of group a would fill an empty node",
		},
		"an empty node comes before a new one": {
			places: []string{place("a", 5, 1, new), place("b", 2, 1, empty)},
			demand: 2, want: map[string]int{"b": 2},
		},
		"a lower price comes before a node that exists": {
			places: []string{place("a", 5, 1, new), place("b", 1, 3, "")},
			groups: `, "price": PRICE`, demand: 1, want: map[string]int{"a": 1},
		},
		"nodes that others have been promised are not there": {
			places: []string{place("a", 5, 1, new), place("b", 1, 0, ""), place("b", 5, 1, new)},
			demand: 1, want: map[string]int{"a": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var groups []string
			for i, group := range []string{"a", "b"} {
				more := strings.ReplaceAll(c.groups, "PRICE", fmt.Sprint(1+i))
				groups = append(groups, fmt.Sprintf(`{"name": %q, "resources": {"GPU": 1}, "maxReplicas": 9,
					"pod": {"requests": {"nvidia.com/gpu": 1}}%s}`, group, more))
			}
			s := plannertest.Read(t, fmt.Sprintf(
				`{"groups": [%s], "places": [%s], "pendingRequests": [{"resources": {"GPU": 1}, "count": %d}]}`,
				strings.Join(groups, ","), strings.Join(c.places, ","), c.demand,
			))
			plan := planner.Compute(s, planner.Policy{})
			if diff := cmp.Diff(c.want, plan.Launch); diff != "" {
				t.Errorf("launches (-want +got): %s", diff)
			}
			for _, g := range plan.Groups {
				if c.why != "" && c.want[g.Name] == 0 && !strings.Contains(g.Reasons[0].Message, c.why) {
					t.Errorf("group %s: %v, want %q", g.Name, g.Reasons, c.why)
				}
			}
		})
	}
}
