package planner

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func withoutWarm(s Snapshot) Snapshot {
	s.Warm = nil
	return s
}

func TestOnceAPlanWithWarmCapacityIsAppliedTheNextPlanIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { settles(t, plannertest.DrawWarm(t)) })
}

// Warm capacity comes after all demand: it changes neither what is served nor what is launched for demand, and it stops
// nothing.
func TestWarmCapacityChangesNothingForDemand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawWarm(t)
		with, without := Compute(s, Policy{}), Compute(withoutWarm(s), Policy{})
		if diff := cmp.Diff(unmetByKind(without), unmetByKind(with)); diff != "" {
			t.Errorf("unmet (-without +with warm capacity): %s\n%s", diff, plannertest.Compact(s))
		}
		if diff := cmp.Diff(without.InfeasibleGangRequests, with.InfeasibleGangRequests, cmp.FilterPath(func(p cmp.Path) bool {
			return p.Last().String() == ".Reason"
		}, cmp.Ignore())); diff != "" {
			t.Errorf("unmet gangs (-without +with warm capacity): %s", diff)
		}
		for group, n := range without.Launch {
			if with.Launch[group] < n {
				t.Errorf("launches %d of %s, %d without warm capacity\n%s", with.Launch[group], group, n, plannertest.Compact(s))
			}
		}
		stopped := map[string]bool{}
		for _, stop := range without.Terminate {
			stopped[stop.Pod] = true
		}
		for _, stop := range with.Terminate {
			if !stopped[stop.Pod] && stop.Reason != model.StopIdle {
				t.Errorf("%s stops, and without warm capacity it does not", stop.Pod)
			}
		}
		var launched int64
		for _, w := range with.Warm {
			launched += w.Launching + w.Coming // demand may use the new pod and leave an earlier one
		}
		if launched == 0 && !maps.Equal(with.Launch, without.Launch) {
			t.Errorf("launches %v for nothing, %v without warm capacity\n%s\n%s", with.Launch, without.Launch, plannertest.Compact(s), asJSON(t, with.Warm))
		}
	})
}

func TestWarmCapacityStaysWithinAllLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawWarm(t)
		policy := Policy{MaxInFlight: rapid.IntRange(0, 3).Draw(t, "cap")}
		plan, without := Compute(s, policy), Compute(withoutWarm(s), policy)
		groups := map[string]Group{}
		for _, g := range s.Groups {
			groups[g.Name] = g
		}
		pending := map[string]int{}
		for _, n := range s.Nodes {
			if n.State == Pending {
				pending[n.Group]++
			}
		}
		total := 0
		for _, row := range plan.Groups {
			g, launch := groups[row.Name], plan.Launch[row.Name]
			total += row.Current + launch
			if launch <= without.Launch[row.Name] {
				continue
			}
			if launch%g.NumOfHosts != 0 || row.Current+launch > row.Max || g.Closed != "" {
				t.Errorf("launches %d of %s, which has %d of at most %d, %d hosts, closed %q", launch, g.Name, row.Current, row.Max, g.NumOfHosts, g.Closed)
			}
			if most := policy.MaxInFlight; most > 0 && pending[g.Name]+launch > max(most, g.NumOfHosts) {
				t.Errorf("launches %d of %s with %d on their way, at most %d", launch, g.Name, pending[g.Name], most)
			}
		}
		if s.MaxWorkers != nil && !maps.Equal(plan.Launch, without.Launch) && total > *s.MaxWorkers {
			t.Errorf("%d workers in all, at most %d allowed", total, *s.MaxWorkers)
		}
	})
}

func TestTheOrderOfTheInputDoesNotMatterForWarmCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawWarm(t)
		shuffled := s
		shuffled.Groups = rapid.Permutation(s.Groups).Draw(t, "groupOrder")
		shuffled.Nodes = rapid.Permutation(s.Nodes).Draw(t, "nodeOrder")
		shuffled.Requests = rapid.Permutation(s.Requests).Draw(t, "requestOrder")
		if diff := cmp.Diff(asJSON(t, Compute(s, Policy{})), asJSON(t, Compute(shuffled, Policy{}))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEachEntrySaysWhatItHasAndWhy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawWarm(t)
		plan := Compute(s, Policy{})
		if len(plan.Warm) != len(s.Warm.Keep) {
			t.Fatalf("%d entries of %d", len(plan.Warm), len(s.Warm.Keep))
		}
		kept := map[string]bool{}
		for _, w := range plan.Warm {
			if w.Reason.Code == "" || w.Ready < 0 || w.Coming < 0 || w.Launching < 0 {
				t.Errorf("%+v", w)
			}
			missing := w.Count - w.Ready - w.Coming - w.Launching
			if fulfilled := w.Reason.Code == model.CodeWarm; fulfilled != (missing <= 0) {
				t.Errorf("%d missing, code %s", missing, w.Reason.Code)
			}
			for _, pod := range w.Kept {
				if kept[pod] {
					t.Errorf("%s is kept for two entries", pod)
				}
				kept[pod] = true
			}
		}
		if slices.ContainsFunc(plan.Terminate, func(stop Termination) bool { return kept[stop.Pod] }) {
			t.Error("a worker that is kept warm stops")
		}
	})
}

// TestWarmCapacityWaitsForNoDemandThatALimitStops: only demand that the cap on all groups delays comes before it.
func TestWarmCapacityWaitsForNoDemandThatALimitStops(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"CPU": 16}, "maxReplicas": 2}, {"name": "w", "resources": {"CPU": 2}, "maxReplicas": 50}], "nodes": [],
		"pendingGangRequests": [{"id": "aa", "strategy": "STRICT_SPREAD", "bundles": [{"CPU": 8}, {"CPU": 8}, {"CPU": 8}]}], "warm": {"keep": [{"name": "k", "group": "w", "count": 3}]}}`)
	if got := Compute(s, Policy{MaxInFlight: 1000}).Launch["w"]; got != 3 {
		t.Errorf("launches %d of w, want 3", got)
	}
}
