package planner

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
)

func withoutWarm(s Snapshot) Snapshot {
	s.Warm = nil
	return s
}

// Warm capacity comes after all demand: it changes neither what is served nor what is launched for demand, and it stops
// nothing.
func TestWarmCapacityChangesNothingForDemand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWarm(t)
		with, without := Compute(s, Policy{}), Compute(withoutWarm(s), Policy{})
		if diff := cmp.Diff(unmetByKind(without), unmetByKind(with)); diff != "" {
			t.Errorf("unmet (-without +with warm capacity): %s\n%s", diff, compact(s))
		}
		if diff := cmp.Diff(without.InfeasibleGangRequests, with.InfeasibleGangRequests, cmp.FilterPath(func(p cmp.Path) bool {
			return p.Last().String() == ".Reason"
		}, cmp.Ignore())); diff != "" {
			t.Errorf("unmet gangs (-without +with warm capacity): %s", diff)
		}
		for group, n := range without.Launch {
			if with.Launch[group] < n {
				t.Errorf("launches %d of %s, %d without warm capacity\n%s", with.Launch[group], group, n, compact(s))
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
			t.Errorf("launches %v for nothing, %v without warm capacity\n%s\n%s", with.Launch, without.Launch, compact(s), asJSON(t, with.Warm))
		}
	})
}

func TestEachEntrySaysWhatItHasAndWhy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWarm(t)
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
