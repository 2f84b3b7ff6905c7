package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// drawMarked draws a small cluster whose groups have some of the properties that operators and the loop know: prices,
// priorities, scores of failed launches, idle timeouts, and pools of nodes with limits.
func drawMarked(t *rapid.T) Snapshot {
	s := plannertest.DrawSnapshot(t)
	some := func(name string, one int) bool { return rapid.IntRange(1, one).Draw(t, name) == one }
	for i := range s.Groups {
		g := &s.Groups[i]
		if rapid.Bool().Draw(t, "priced") {
			price := float64(rapid.IntRange(0, 9).Draw(t, "price"))
			g.Price = &price
		}
		g.Priority = rapid.IntRange(0, 1).Draw(t, "priority")
		if some("scored", 4) {
			score := float64(rapid.IntRange(0, 4).Draw(t, "quarters")) / 4
			g.RecoverableScore = &score
		}
		if some("cooling", 6) && g.Closed == "" && g.Replicas == nil {
			g.CoolingSeconds = 30
		}
		if some("own idle time-out", 4) {
			timeout := float64(rapid.IntRange(0, 120).Draw(t, "timeout"))
			g.IdleTimeoutSeconds = &timeout
		}
		if some("pooled", 3) {
			most := rapid.Int64Range(0, 6).Draw(t, "most")
			g.Pools = []GroupPool{{Name: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pool"), MaxPods: &most, Units: rapid.Int64Range(1, 3).Draw(t, "units")}}
		}
	}
	return s
}

func TestMarksOfGroupsKeepTheProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawMarked(t)
		plan := Compute(s, Policy{})
		shuffled := s
		shuffled.Groups = rapid.Permutation(s.Groups).Draw(t, "groupOrder")
		shuffled.Requests = rapid.Permutation(s.Requests).Draw(t, "requestOrder")
		if diff := cmp.Diff(asJSON(t, plan), asJSON(t, Compute(shuffled, Policy{}))); diff != "" {
			t.Errorf("another order of the input makes another plan: %s", diff)
		}
		for _, g := range s.Groups {
			if n := plan.Launch[g.Name]; n > 0 && (g.CoolingSeconds > 0 || g.Closed != "") {
				t.Errorf("launches %d of %s, which takes none: %s", n, g.Name, plannertest.Compact(s))
			}
		}
		if len(plan.Terminate) > 0 {
			return // stopped pods make room
		}
		if next := Compute(applied(s, plan, 0), Policy{}); len(next.Launch) > 0 {
			t.Errorf("launches %v after a plan that launched %v: %s", next.Launch, plan.Launch, plannertest.Compact(s))
		}
	})
}
