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

func TestLaunchesAreChosenByTheObjective(t *testing.T) {
	type launch = map[string]int
	for name, c := range map[string]struct {
		snapshot string
		policy   Policy
		want     launch
	}{
		"the cheaper of two that serve, whatever their size": {snapshot: `{"groups": [
			{"name": "dear", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 2}, {"name": "cheap", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 1}],
			"pendingRequests": [{"resources": {"CPU": 4}, "count": 1}]}`, want: launch{"cheap": 1}},
		"priority comes before price": {snapshot: `{"groups": [
			{"name": "reserved", "resources": {"CPU": 4}, "maxReplicas": 2, "price": 2, "priority": 10}, {"name": "spot", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 1}],
			"pendingRequests": [{"resources": {"CPU": 4}, "count": 3}]}`, want: launch{"reserved": 2, "spot": 1}},
		"priority comes before a better fit": {snapshot: `{"groups": [
			{"name": "large", "resources": {"CPU": 64}, "maxReplicas": 9, "priority": 1}, {"name": "small", "resources": {"CPU": 4}, "maxReplicas": 9}],
			"pendingRequests": [{"resources": {"CPU": 4}, "count": 1}]}`, want: launch{"large": 1}},
		"one group without a price that could serve, and waste decides": {snapshot: `{"groups": [
			{"name": "a", "resources": {"CPU": 16}, "maxReplicas": 9, "price": 1}, {"name": "b", "resources": {"CPU": 8}, "maxReplicas": 9}],
			"pendingRequests": [{"resources": {"CPU": 8}, "count": 1}]}`, want: launch{"b": 1}},
		"a group without a price that could not serve does not matter": {snapshot: `{"groups": [
			{"name": "a", "resources": {"CPU": 16}, "maxReplicas": 9, "price": 1}, {"name": "b", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 2}, {"name": "c", "resources": {"CPU": 1}, "maxReplicas": 9}],
			"pendingRequests": [{"resources": {"CPU": 8}, "count": 1}]}`, want: launch{"a": 1}},
		"nor does a closed one": {snapshot: `{"groups": [
			{"name": "a", "resources": {"CPU": 16}, "maxReplicas": 9, "price": 1}, {"name": "b", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 2}, {"name": "c", "resources": {"CPU": 8}, "maxReplicas": 9, "closed": "suspended"}],
			"pendingRequests": [{"resources": {"CPU": 8}, "count": 1}]}`, want: launch{"a": 1}},
		"a GPU is wasted last": {snapshot: `{"groups": [
			{"name": "one", "resources": {"CPU": 24, "GPU": 1}, "maxReplicas": 9}, {"name": "two", "resources": {"CPU": 16, "GPU": 2}, "maxReplicas": 9}],
			"pendingRequests": [{"resources": {"CPU": 4, "GPU": 1}, "count": 1}]}`, want: launch{"one": 1}},
		"of equal waste, fewer pods": {snapshot: `{"groups": [
			{"name": "half", "resources": {"CPU": 4}, "maxReplicas": 9}, {"name": "whole", "resources": {"CPU": 8}, "maxReplicas": 9}],
			"pendingRequests": [{"resources": {"CPU": 4}, "count": 2}]}`, want: launch{"whole": 1}},
		"of equal groups, the first by name, though its nodes have shown what Ray adds": {snapshot: `{"groups": [
			{"name": "a", "resources": {"CPU": 1, "GPU": 1, "memory": 1073741824, "object_store_memory": 536870912, "accelerator_type:A100": 1}, "maxReplicas": 9},
			{"name": "b", "resources": {"CPU": 1, "GPU": 1, "memory": 1073741824}, "maxReplicas": 9}],
			"pendingRequests": [{"resources": {"GPU": 0.5}, "count": 4}]}`, want: launch{"a": 2}},
		"a topology gang takes the cheaper value, though it takes more pods": {snapshot: `{"groups": [
			{"name": "a", "resources": {"GPU": 8}, "maxReplicas": 9, "labels": {"zone": "a"}, "price": 100}, {"name": "b", "resources": {"GPU": 1}, "maxReplicas": 9, "labels": {"zone": "b"}, "price": 1}],
			"pendingGangRequests": [{"id": "g", "strategy": "PACK", "topologyLabel": "zone", "bundles": [{"GPU": 1}, {"GPU": 1}, {"GPU": 1}, {"GPU": 1}]}]}`, want: launch{"b": 4}},
		"a topology gang takes the value that stands better": {snapshot: `{"groups": [
			{"name": "a", "resources": {"GPU": 1}, "maxReplicas": 9, "labels": {"zone": "a"}}, {"name": "b", "resources": {"GPU": 1}, "maxReplicas": 9, "labels": {"zone": "b"}, "priority": 5}],
			"pendingGangRequests": [{"id": "g", "strategy": "PACK", "topologyLabel": "zone", "bundles": [{"GPU": 1}, {"GPU": 1}]}]}`, want: launch{"b": 2}},
		"a topology gang of CPU work leaves accelerators alone": {snapshot: `{"groups": [
			{"name": "a", "resources": {"CPU": 8, "GPU": 1}, "maxReplicas": 9, "labels": {"zone": "a"}, "price": 1}, {"name": "b", "resources": {"CPU": 4}, "maxReplicas": 9, "labels": {"zone": "b"}, "price": 5}],
			"pendingGangRequests": [{"id": "g", "strategy": "PACK", "topologyLabel": "zone", "bundles": [{"CPU": 4}, {"CPU": 4}]}]}`, want: launch{"b": 2}},
		"a group that can never launch takes no price from the others": {snapshot: `{"groups": [
			{"name": "big", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 1}, {"name": "small", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 5}, {"name": "never", "resources": {"CPU": 4}, "maxReplicas": 0}],
			"pendingRequests": [{"resources": {"CPU": 4}, "count": 1}]}`, want: launch{"big": 1}},
		"of groups that failed a second apart, the cheaper": {snapshot: `{"groups": [
			{"name": "a", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 10, "recoverableScore": 0.302}, {"name": "b", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 1, "recoverableScore": 0.3}],
			"pendingRequests": [{"resources": {"CPU": 4}, "count": 2}]}`, want: launch{"b": 2}},
		"of groups that failed long and lately, the dearer that is likelier to be had": {snapshot: `{"groups": [
			{"name": "a", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 10, "recoverableScore": 0.6}, {"name": "b", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 1, "recoverableScore": 0.3}],
			"pendingRequests": [{"resources": {"CPU": 4}, "count": 2}]}`, want: launch{"a": 2}},
		"of equal groups, the first by name": {snapshot: `{"groups": [
			{"name": "b", "resources": {"CPU": 4}, "maxReplicas": 9}, {"name": "a", "resources": {"CPU": 4}, "maxReplicas": 9}],
			"pendingRequests": [{"resources": {"CPU": 4}, "count": 2}]}`, want: launch{"a": 2}},
		"CPU work does not launch a GPU group, however cheap": {snapshot: `{"groups": [
			{"name": "cpu", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 5}, {"name": "gpu", "resources": {"CPU": 8, "GPU": 1}, "maxReplicas": 9, "price": 1}],
			"pendingRequests": [{"resources": {"CPU": 8}, "count": 3}]}`, want: launch{"cpu": 3}},
		"unless the policy allows it": {snapshot: `{"groups": [
			{"name": "cpu", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 5}, {"name": "gpu", "resources": {"CPU": 8, "GPU": 1}, "maxReplicas": 9, "price": 1}],
			"pendingRequests": [{"resources": {"CPU": 8}, "count": 3}]}`, policy: Policy{GPUForCPU: true}, want: launch{"gpu": 3}},
		"little GPU work is no excuse for many GPU nodes": {snapshot: `{"groups": [
			{"name": "cpu", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 5}, {"name": "gpu", "resources": {"CPU": 8, "GPU": 1}, "maxReplicas": 9, "price": 1}],
			"pendingRequests": [{"resources": {"GPU": 0.25}, "count": 4}, {"resources": {"CPU": 8}, "count": 3}]}`, want: launch{"cpu": 2, "gpu": 1}},
		"GPU work is not spread over more GPU nodes to make room for CPU work": {snapshot: `{"groups": [
			{"name": "cpu", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 5}, {"name": "gpu", "resources": {"CPU": 12, "GPU": 4}, "maxReplicas": 9, "price": 1}],
			"pendingRequests": [{"resources": {"CPU": 2, "GPU": 1}, "count": 4}, {"resources": {"CPU": 8}, "count": 3}]}`, want: launch{"cpu": 3, "gpu": 1}},
		"CPU work rides along on a GPU node that is needed": {snapshot: `{"groups": [
			{"name": "cpu", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 1}, {"name": "gpu", "resources": {"CPU": 32, "GPU": 1}, "maxReplicas": 9, "price": 9}],
			"pendingRequests": [{"resources": {"CPU": 1, "GPU": 1}, "count": 1}, {"resources": {"CPU": 1}, "count": 30}]}`, want: launch{"gpu": 1}},
		"all is served before accelerators are spared": {snapshot: `{"maxWorkers": 1, "groups": [
			{"name": "cpu", "resources": {"CPU": 1}, "maxReplicas": 9}, {"name": "gpu", "resources": {"CPU": 8, "GPU": 1}, "maxReplicas": 9}],
			"pendingRequests": [{"resources": {"CPU": 1}, "count": 8}]}`, want: launch{"gpu": 1}},
		"where pods are short, larger ones": {snapshot: `{"maxWorkers": 2, "groups": [
			{"name": "large", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 9}, {"name": "small", "resources": {"CPU": 1}, "maxReplicas": 9, "price": 1}],
			"pendingRequests": [{"resources": {"CPU": 1}, "count": 12}]}`, want: launch{"large": 2}},
		"two sizes together where neither alone is cheapest": {snapshot: `{"groups": [
			{"name": "large", "resources": {"CPU": 10}, "maxReplicas": 9, "price": 10}, {"name": "small", "resources": {"CPU": 3}, "maxReplicas": 9, "price": 3.5}],
			"pendingRequests": [{"resources": {"CPU": 3}, "count": 4}, {"resources": {"CPU": 1}, "count": 1}]}`, want: launch{"large": 1, "small": 1}},
		"shapes that fill small nodes together, where the large one looks better at first": {snapshot: `{"groups": [
			{"name": "small", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 5}, {"name": "large", "resources": {"CPU": 10}, "maxReplicas": 9, "price": 12}],
			"pendingRequests": [{"resources": {"CPU": 3}, "count": 3}, {"resources": {"CPU": 1}, "count": 3}]}`, want: launch{"small": 3}},
		"the same among groups of the best priority alone": {snapshot: `{"groups": [{"name": "spot", "resources": {"CPU": 12}, "maxReplicas": 9, "price": 1},
			{"name": "small", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 5, "priority": 1}, {"name": "large", "resources": {"CPU": 10}, "maxReplicas": 9, "price": 12, "priority": 1}],
			"pendingRequests": [{"resources": {"CPU": 3}, "count": 3}, {"resources": {"CPU": 1}, "count": 3}]}`, want: launch{"small": 3}},
		"priority holds for gangs too": {snapshot: `{"groups": [
			{"name": "reserved", "resources": {"CPU": 8}, "maxReplicas": 1, "price": 2, "priority": 10}, {"name": "spot", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 1}],
			"pendingGangRequests": [{"strategy": "STRICT_SPREAD", "bundles": [{"CPU": 4}, {"CPU": 4}]}]}`, want: launch{"reserved": 1, "spot": 1}},
		"a small count of a small shape does not make a dear node look good": {snapshot: `{"groups": [
			{"name": "a", "resources": {"CPU": 8}, "maxReplicas": 9, "price": 18}, {"name": "b", "resources": {"CPU": 13}, "maxReplicas": 9, "price": 13}],
			"pendingRequests": [{"resources": {"CPU": 6}, "count": 3}, {"resources": {"CPU": 2}, "count": 1}]}`, want: launch{"b": 2}},
		"the preferred selector comes before price": {snapshot: `{"groups": [
			{"name": "eu", "resources": {"CPU": 4}, "labels": {"zone": "eu"}, "maxReplicas": 1, "price": 9}, {"name": "us", "resources": {"CPU": 4}, "labels": {"zone": "us"}, "maxReplicas": 9, "price": 1}],
			"pendingRequests": [{"resources": {"CPU": 4}, "count": 2, "labelSelectors": [{"zone": "eu"}, {"zone": "us"}]}]}`, want: launch{"eu": 1, "us": 1}},
		"gangs of a node each share a large node that is cheaper than as many small ones": {snapshot: `{"groups": [
			{"name": "a", "resources": {"GPU": 1}, "maxReplicas": 9, "price": 3}, {"name": "b", "resources": {"GPU": 8}, "maxReplicas": 9, "price": 10}],
			"pendingGangRequests": [` + eachOf("STRICT_PACK", `{"GPU": 1}`, 8) + `]}`, want: launch{"b": 1}},
		"so do gangs of several sizes": {snapshot: `{"groups": [
			{"name": "a", "resources": {"GPU": 2}, "maxReplicas": 9, "price": 6}, {"name": "b", "resources": {"GPU": 8}, "maxReplicas": 9, "price": 15}],
			"pendingGangRequests": [{"id": "w", "strategy": "STRICT_PACK", "bundles": [{"GPU": 1}]}, {"id": "x", "strategy": "STRICT_PACK", "bundles": [{"GPU": 1}, {"GPU": 1}]},
				{"id": "y", "strategy": "PACK", "bundles": [{"GPU": 0.5}, {"GPU": 0.5}, {"GPU": 0.5}, {"GPU": 0.5}]}, {"id": "z", "strategy": "SPREAD", "bundles": [{"GPU": 1}, {"GPU": 1}]}]}`, want: launch{"b": 1}},
		"gangs that spread strictly share large nodes, one bundle of each on a node": {snapshot: `{"groups": [
			{"name": "a", "resources": {"GPU": 1}, "maxReplicas": 99, "price": 3}, {"name": "b", "resources": {"GPU": 8}, "maxReplicas": 99, "price": 6}],
			"pendingGangRequests": [` + eachOf("STRICT_SPREAD", `{"GPU": 1}, {"GPU": 1}`, 4) + `]}`, want: launch{"b": 2}},
		"a gang and requests share a node": {snapshot: `{"groups": [
			{"name": "a", "resources": {"GPU": 4}, "maxReplicas": 9, "price": 4}, {"name": "b", "resources": {"GPU": 8}, "maxReplicas": 9, "price": 6}],
			"pendingRequests": [{"resources": {"GPU": 1}, "count": 4}],
			"pendingGangRequests": [{"strategy": "STRICT_PACK", "bundles": [{"GPU": 4}]}]}`, want: launch{"b": 1}},
		"gangs that share a label share a node of its value": {snapshot: `{"groups": [
			{"name": "a", "resources": {"GPU": 1}, "maxReplicas": 9, "price": 3, "labels": {"rack": "1"}}, {"name": "b", "resources": {"GPU": 8}, "maxReplicas": 9, "price": 10, "labels": {"rack": "1"}}],
			"pendingGangRequests": [{"id": "x", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 1}, {"GPU": 1}]},
				{"id": "y", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 1}, {"GPU": 1}]}]}`, want: launch{"b": 1}},
		"where pods are short, gangs share a larger one": {snapshot: `{"maxWorkers": 1, "groups": [
			{"name": "a", "resources": {"GPU": 1}, "maxReplicas": 9, "price": 1}, {"name": "b", "resources": {"GPU": 8}, "maxReplicas": 9, "price": 10}],
			"pendingGangRequests": [{"id": "x", "strategy": "STRICT_PACK", "bundles": [{"GPU": 1}]}, {"id": "y", "strategy": "STRICT_PACK", "bundles": [{"GPU": 0.5}]}]}`, want: launch{"b": 1}},
		"a replica of many hosts is paid for as a whole": {snapshot: `{"groups": [
			{"name": "four", "resources": {"CPU": 4}, "numOfHosts": 4, "maxReplicas": 9, "price": 1}, {"name": "one", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 1.5}],
			"pendingRequests": [{"resources": {"CPU": 4}, "count": 6}]}`, want: launch{"four": 4, "one": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Compute(plannertest.Read(t, c.snapshot), c.policy).Launch); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// eachOf writes a number of gangs of the same bundles.
func eachOf(strategy, bundles string, count int) string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf(`{"id": "%d", "strategy": "%s", "bundles": [%s]}`, i, strategy, bundles))
	}
	return strings.Join(all, ", ")
}

func TestPricesAndPrioritiesKeepTheProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawPriced(t)
		plan := Compute(s, Policy{})
		shuffled := s
		shuffled.Groups = rapid.Permutation(s.Groups).Draw(t, "groupOrder")
		shuffled.Requests = rapid.Permutation(s.Requests).Draw(t, "requestOrder")
		shuffled.Gangs = rapid.Permutation(s.Gangs).Draw(t, "gangOrder")
		if diff := cmp.Diff(asJSON(t, plan), asJSON(t, Compute(shuffled, Policy{}))); diff != "" {
			t.Errorf("another order of the input makes another plan: %s", diff)
		}
		if len(plan.Terminate) > 0 {
			return // what is stopped makes room
		}
		if next := Compute(applied(s, plan, 0), Policy{}); len(next.Launch) > 0 {
			t.Errorf("launches %v after a plan that launched %v: %s", next.Launch, plan.Launch, plannertest.Compact(s))
		}
		for i := range s.Groups {
			g := &s.Groups[i]
			if plan.Launch[g.Name] == 0 {
				continue
			}
			less := plan
			less.Launch = map[string]int{}
			for name, n := range plan.Launch {
				less.Launch[name] = n
			}
			less.Launch[g.Name] -= g.NumOfHosts
			if again := Compute(applied(s, less, 0), Policy{}); len(again.Launch) == 0 && unmet(again) <= unmet(plan) {
				t.Errorf("launches %v, and one replica of %s less serves as much", plan.Launch, g.Name)
			}
		}
	})
}

func TestRealisticPlansAreFixedPointsWithNothingToSpare(t *testing.T) {
	for i, s := range markets(40) {
		plan := Compute(s, Policy{})
		if next := Compute(applied(s, plan, 0), Policy{}); len(next.Launch) > 0 {
			t.Errorf("instance %d launches %v after %v", i, next.Launch, plan.Launch)
		}
		for _, g := range s.Groups {
			if plan.Launch[g.Name] == 0 {
				continue
			}
			less := applied(s, plan, 0)
			at := slices.IndexFunc(less.Nodes, func(n Node) bool { return n.Group == g.Name })
			less.Nodes = slices.Delete(slices.Clone(less.Nodes), at, at+1)
			if again := Compute(less, Policy{}); len(again.Launch) == 0 && len(again.InfeasibleRequests) == 0 {
				t.Errorf("instance %d: %s", i, fmt.Sprintf("one %s less serves as much as %v", g.Name, plan.Launch))
			}
		}
	}
}
