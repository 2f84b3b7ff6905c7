package place

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// TestWhatIsAdmittedFitsTogether: however soon the trials end, what is planned for can be served, no all-or-nothing
// request has a part, and what has everything was evaluated.
func TestWhatIsAdmittedFitsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawOwned(t)
		s.KeptResources = nil
		p := newSearch(NewFleet(&s), &s, model.Policy{})
		if len(p.RestRequests) == 0 {
			return
		}
		a := p.newAdmitting(make([]int64, len(p.Groups)))
		a.tries = rapid.IntRange(0, 60).Draw(t, "tries")
		a.admitAll()
		if a.tries = 1; !a.fits() {
			t.Errorf("what is admitted does not fit: %s", plannertest.Compact(s))
		}
		for i := range p.RestRequests {
			of := &p.RestRequests[i]
			if n := len(of.Refused()); of.AllOrNothing && n > 0 && n < len(of.Items) {
				t.Errorf("%s has a part: %v of %s", of.ID, of.Admitted, plannertest.Compact(s))
			}
			if of.Unevaluated && len(of.Refused()) == 0 {
				t.Errorf("%s has everything and was not evaluated", of.ID)
			}
		}
	})
}

// TestEvaluatingIsCutShort: after all trials, the last requests are not evaluated, even if there is room.
func TestEvaluatingIsCutShort(t *testing.T) {
	s := plannertest.Read(t, threeOwners)
	for tries, want := range map[int]string{0: "[0] [0] [0] true", 2: "[3] [0] [0] true", 9: "[3] [1] [2] false"} {
		p := newSearch(NewFleet(&s), &s, model.Policy{})
		a := p.newAdmitting(make([]int64, len(p.Groups)))
		a.tries = tries
		p.settleWith(a)
		r := p.RestRequests
		if got := fmt.Sprint(r[0].Admitted, r[1].Admitted, r[2].Admitted, r[1].Unevaluated); got != want {
			t.Errorf("%d tries admit %s, want %s", tries, got, want)
		}
	}
}

const threeOwners = `{"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 4}, {"name": "cpu", "resources": {"CPU": 1}, "maxReplicas": 9}], "nodes": [],
	"ownedRequests": [{"id": "a", "owner": "ann", "requests": [{"resources": {"GPU": 1}, "count": 3}]},
		{"id": "b", "owner": "bob", "requests": [{"resources": {"GPU": 1}, "count": 2}]},
		{"id": "c", "owner": "cat", "requests": [{"resources": {"CPU": 1}, "count": 2}]}]}`
