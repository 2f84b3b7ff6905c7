package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
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
	s := readText(t, `{"groups": [{"name": "a", "resources": {"GPU": 8}, "maxReplicas": 999}], "nodes": [`+strings.Join(nodes, ",")+`],
		"pendingGangRequests": [{"id": "g", "strategy": "PACK", "topologyLabel": "node", "bundles": [{"GPU": 4}, {"GPU": 4}]}]}`)
	if plan := Compute(s, Policy{}); len(plan.Launch)+len(plan.InfeasibleGangRequests) > 0 {
		t.Errorf("launches %v and leaves %v", plan.Launch, plan.InfeasibleGangRequests)
	}
}

// A rack whose nodes exist goes before one for which a pool must add nodes, even if that is cheaper, and only if it holds
// the whole gang. Between racks of one kind, the cheaper one wins.
func TestAGangPrefersARackWithRoomNow(t *testing.T) {
	group := func(rack string, price int) string {
		return fmt.Sprintf(`{"name": %q, "resources": {"GPU": 4}, "maxReplicas": 9, "labels": {"rack": %q}, "price": %d,
			"pod": {"name": %[1]q, "requests": {"nvidia.com/gpu": 4}}}`, rack, rack, price)
	}
	place := func(rack, nodes, more string) string {
		return fmt.Sprintf(`{"pool": %q, "nodes": %s, "free": {"nvidia.com/gpu": 4}, "accepts": [%[1]q]%[3]s}`, rack, nodes, more)
	}
	const isNew = `, "new": true`
	for name, c := range map[string]struct {
		a, b, want string
	}{
		"a pool of unknown size":  {place("a", "null", isNew), place("b", "4", ""), "b"},
		"a pool of known size":    {place("a", "9", isNew), place("b", "4", ""), "b"},
		"too few nodes there":     {place("a", "null", isNew), place("b", "3", ""), "a"},
		"some there, some not":    {place("a", "2", "") + "," + place("a", "9", isNew), place("b", "4", ""), "b"},
		"both there":              {place("a", "4", ""), place("b", "4", ""), "a"},
		"both of unknown size":    {place("a", "null", isNew), place("b", "null", isNew), "a"},
		"pools that may have all": {place("a", "4", "") + "," + place("a", "null", isNew), place("b", "null", isNew), "a"},
	} {
		s := readText(t, fmt.Sprintf(`{"groups": [%s, %s], "places": [%s, %s], "pendingGangRequests": [{"id": "g", "strategy": "PACK",
			"topologyLabel": "rack", "bundles": [{"GPU": 4}, {"GPU": 4}, {"GPU": 4}, {"GPU": 4}]}]}`, group("a", 1), group("b", 2), c.a, c.b))
		if plan := Compute(s, Policy{}); plan.Launch[c.want] != 4 || len(plan.Launch) != 1 {
			t.Errorf("%s: launches %v, want 4 of %s", name, plan.Launch, c.want)
		}
	}
}

// TestATopologyGangThatIsServedFitsWithinOneValue keeps only one value's nodes of an applied plan and plans again: what
// was served must be served there, without another launch.
func TestATopologyGangThatIsServedFitsWithinOneValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
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
		t.Errorf("the gang is called served and fits in no zone:\n%s\n%s", compact(s), compact(plan))
	})
}

// TestEachGangTakesOneReplicaThatIsItsRack plans until nothing is launched, as the operator makes each replica that is
// asked for. There are never more replicas than gangs, and in the end each gang that fits in a replica is served by one.
func TestEachGangTakesOneReplicaThatIsItsRack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts, most := rapid.IntRange(2, 5).Draw(t, "hosts"), rapid.IntRange(0, 5).Draw(t, "most")
		s := Snapshot{Groups: []Group{{Name: "racks", Resources: raydemand.Bundle{"GPU": raydemand.Whole(4)}, Max: most, NumOfHosts: hosts,
			Announces: []landing.Announced{{Name: "rack", Present: true, PerReplica: true}}}}}
		fitting := 0
		for i := range rapid.IntRange(1, 5).Draw(t, "gangs") {
			g := raydemand.Gang{ID: fmt.Sprint(i), Strategy: raydemand.Pack, TopologyLabel: "rack"}
			if rapid.Bool().Draw(t, "spread") {
				g.Strategy = raydemand.StrictSpread
			}
			for range rapid.IntRange(1, 6).Draw(t, "bundles") {
				g.Bundles = append(g.Bundles, raydemand.Bundle{"GPU": raydemand.Whole(4)})
			}
			if len(g.Bundles) <= hosts {
				fitting++
			}
			s.Gangs = append(s.Gangs, g)
		}
		replicas := 0
		for range 20 {
			plan := Compute(s, Policy{})
			launch := plan.Launch["racks"]
			if launch != 0 && launch != hosts {
				t.Fatalf("launches %d pods at once:\n%s", launch, compact(s))
			}
			if launch == 0 {
				unserved := 0
				for _, g := range plan.InfeasibleGangRequests {
					if len(g.Bundles) <= hosts {
						unserved++
					}
				}
				if unserved > 0 && replicas < most || replicas > fitting {
					t.Fatalf("%d of %d gangs that fit are unserved with %d of %d replicas:\n%s", unserved, fitting, replicas, most, compact(s))
				}
				return
			}
			joined := rapid.Bool().Draw(t, "joined")
			for host := range hosts {
				n := Node{Pod: fmt.Sprintf("p-%d-%d", replicas, host), Group: "racks", State: Pending, Replica: fmt.Sprint("racks-", replicas)}
				if joined {
					n.State, n.Total = Idle, s.Groups[0].Resources
					n.Labels = map[string]string{"ray.io/node-id": n.Pod, "rack": n.Replica}
				}
				s.Nodes = append(s.Nodes, n)
			}
			replicas++
		}
		t.Fatalf("it never ends:\n%s", compact(s))
	})
}
