package place

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestWhatIsAdmittedOneByOneFitsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawOwned(t)
		s.KeptResources = nil
		p := newSearch(NewFleet(&s), &s, model.Policy{})
		if len(p.RestRequests) == 0 {
			return
		}
		a := p.newAdmitting(make([]int64, len(p.Groups)))
		a.none()
		a.eachFrom(0)
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

// TestOneByOneAdmitsAsMuchOfOneKind: if all requests ask for the same, no other way admits more.
func TestOneByOneAdmitsAsMuchOfOneKind(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 4}], "nodes": [], "ownedRequests": [
		{"id": "a", "owner": "ann", "requests": [{"resources": {"GPU": 1}, "count": 3}]}, {"id": "b", "owner": "bob", "allOrNothing": true, "requests": [{"resources": {"GPU": 1}, "count": 2}]},
		{"id": "c", "owner": "bob", "requests": [{"resources": {"GPU": 1}, "count": 2}]}]}`)
	p := newSearch(NewFleet(&s), &s, model.Policy{})
	a := p.newAdmitting(make([]int64, len(p.Groups)))
	a.none()
	a.eachFrom(0)
	if got, want := fmt.Sprint(p.RestRequests[0].Admitted, p.RestRequests[1].Admitted, p.RestRequests[2].Admitted), "[3] [0] [1]"; got != want {
		t.Errorf("admits %s, want %s", got, want)
	}
}

// TestEvaluatingOneByOneIsCutShort: after all trials, and with a limit on looks, the last requests are not evaluated,
// even if there is room.
func TestEvaluatingOneByOneIsCutShort(t *testing.T) {
	s := plannertest.Read(t, threeOwners)
	for name, test := range map[string]struct {
		looks       int64
		had         string
		unevaluated bool
	}{
		"enough looks": {eachWork, "[3] [1] [2]", false},
		"too few":      {0, "[3] [0] [0]", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newSearch(NewFleet(&s), &s, model.Policy{})
			a := p.newAdmitting(make([]int64, len(p.Groups)))
			a.tries, a.eachWork = 0, test.looks
			p.settleWith(a)
			if got := fmt.Sprint(p.RestRequests[0].Admitted, p.RestRequests[1].Admitted, p.RestRequests[2].Admitted); got != test.had {
				t.Errorf("admits %s, want %s", got, test.had)
			}
			if got := p.RestRequests[1].Unevaluated; got != test.unevaluated {
				t.Errorf("b is not evaluated: %v, want %v", got, test.unevaluated)
			}
		})
	}
}

const threeOwners = `{"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 4}, {"name": "cpu", "resources": {"CPU": 1}, "maxReplicas": 9}], "nodes": [],
	"ownedRequests": [{"id": "a", "owner": "ann", "requests": [{"resources": {"GPU": 1}, "count": 3}]},
		{"id": "b", "owner": "bob", "requests": [{"resources": {"GPU": 1}, "count": 2}]},
		{"id": "c", "owner": "cat", "requests": [{"resources": {"CPU": 1}, "count": 2}]}]}`

// drawIndependent draws requests of one kind each, each kind with a group of its own: what a request has depends only
// on those of its kind.
func drawIndependent(t *rapid.T) model.Snapshot {
	var s model.Snapshot
	for i := range 3 {
		of := raydemand.Bundle{fmt.Sprintf("r%d", i): 10 * raydemand.One}
		s.Groups = append(s.Groups, model.Group{Name: fmt.Sprintf("g%d", i), Resources: of, Max: rapid.IntRange(0, 3).Draw(t, "maximum"), NumOfHosts: 1})
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "requests") {
		kind := raydemand.Bundle{fmt.Sprintf("r%d", rapid.IntRange(0, 2).Draw(t, "kind")): raydemand.One}
		s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{ID: fmt.Sprintf("q%02d", i), Owner: "o", AllOrNothing: rapid.IntRange(0, 3).Draw(t, "whole") == 0,
			Requests: []raydemand.Request{{Bundle: kind, Count: rapid.Int64Range(1, 40).Draw(t, "count")}}})
	}
	return s
}

func TestTheRequestAtWhichTrialsEndLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawIndependent(t)
		p := newSearch(NewFleet(&s), &s, model.Policy{})
		alone := p.newAdmitting(make([]int64, len(p.Groups)))
		alone.none()
		alone.eachFrom(0)
		want := countsOf(p.RestRequests)
		a := p.newAdmitting(make([]int64, len(p.Groups)))
		a.tries = rapid.IntRange(0, 60).Draw(t, "tries")
		tries := a.tries
		a.admitAll()
		if diff := cmp.Diff(want, countsOf(p.RestRequests)); diff != "" {
			t.Errorf("with %d tries (-one by one +has): %s of %s", tries, diff, plannertest.Compact(s))
		}
	})
}

func TestWhatWasFoundBeforeTheTriesEndedIsKept(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 600}], "nodes": [], "ownedRequests": [
		{"id": "a", "owner": "ann", "requests": [{"resources": {"GPU": 1}, "count": 1000}]}]}`)
	p := newSearch(NewFleet(&s), &s, model.Policy{})
	for tries, want := range map[int]int64{1: 0, 2: 500, 3: 500, 4: 500, 5: 562} {
		a := p.newAdmitting(make([]int64, len(p.Groups)))
		a.none()
		a.tries = tries
		if a.whole(0); a.part(&p.RestRequests[0]) || p.RestRequests[0].Admitted[0] != want || len(a.full) > 0 {
			t.Errorf("%d tries: has %d, want %d; full are %v", tries, p.RestRequests[0].Admitted[0], want, a.full)
		}
	}
}
