package planner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestTheSummaryShowsTheResultOfEachDemand(t *testing.T) {
	s := readText(t, `{"takenAt": "2026-01-31T12:01:00Z", "groups": [
		{"name": "cool", "resources": {"TPU": 4}, "coolingSeconds": 40},
		{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 5},
		{"name": "shut", "resources": {"NPU": 1}, "closed": "the group is suspended"},
		{"name": "tried", "resources": {"HPU": 1}, "nodeFit": {"verdict": "trying", "why": "there is no node"}}],
		"nodes": [
		{"pod": "a", "group": "gpu", "state": "IDLE", "total": {"GPU": 1}, "available": {"GPU": 1}},
		{"pod": "b", "group": "gpu", "state": "PENDING", "since": "2026-01-31T12:00:30Z"},
		{"pod": "c", "group": "gpu", "state": "PENDING", "since": "2026-01-31T12:00:10Z"}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 7}, {"resources": {"GPU": 2}, "count": 2}, {"resources": {"TPU": 4}, "count": 3},
		                    {"resources": {"NPU": 1}, "count": 4}, {"resources": {"HPU": 1}, "count": 5}, {"resources": {}, "count": 6}],
		"requestResources": [{"resources": {"GPU": 1}, "count": 2}],
		"pendingGangRequests": [{"id": "aa", "strategy": "STRICT_SPREAD", "bundles": [{"GPU": 9}]}]}`)
	got := map[string]DemandSummary{}
	for _, d := range Compute(s, Policy{}).Summary {
		name := string(d.Kind) + " " + d.Resources.String()
		d.Resources, d.Gang = nil, nil
		got[name] = d
	}
	since := time.Date(2026, 1, 31, 12, 0, 10, 0, time.UTC)
	want := map[string]DemandSummary{
		"request {GPU 1}":          {Kind: KindRequest, Asked: 7, Served: 1, Waiting: 2, WaitingSince: since, Launching: 2, Capped: 2},
		"request {GPU 2}":          {Kind: KindRequest, Asked: 2, Impossible: 2},
		"request {TPU 4}":          {Kind: KindRequest, Asked: 3, CoolingDown: 3},
		"request {NPU 1}":          {Kind: KindRequest, Asked: 4, Closed: 4},
		"request {HPU 1}":          {Kind: KindRequest, Asked: 5, Launching: 1, Trying: 4},
		"request {}":               {Kind: KindRequest, Asked: 6, Served: 6},
		"requestResources {GPU 1}": {Kind: KindRequestResources, Asked: 2, Served: 1, Waiting: 1, WaitingSince: since},
		"gang {}":                  {Kind: KindGang, Asked: 1, Impossible: 1},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestTheSummaryAddsUpToTheDemandExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		plan := Compute(s, Policy{Shapes: rapid.SampledFrom([]int{0, 2}).Draw(t, "shapes")}) // of some, the rest has its turn later
		asked, left := map[DemandKind]map[string]int64{}, map[DemandKind]map[string]int64{}
		for _, kind := range []DemandKind{KindRequest, KindGang, KindRequestResources} {
			asked[kind], left[kind] = map[string]int64{}, map[string]int64{}
		}
		for _, d := range plan.Summary {
			unmet := d.Impossible + d.Capped + d.Closed + d.CoolingDown
			if sum := d.Served + d.Waiting + d.Launching + unmet; sum != d.Asked {
				t.Errorf("%d + %d + %d + %d is not %d: %s", d.Served, d.Waiting, d.Launching, unmet, d.Asked, compact(d))
			}
			for _, n := range []int64{d.Served, d.Waiting, d.Launching, d.Impossible, d.Capped, d.Closed, d.CoolingDown} {
				if n < 0 {
					t.Errorf("a count below zero: %s", compact(d))
				}
			}
			name := compact(d.Resources) + compact(d.Selectors)
			if d.Gang != nil {
				name = d.Gang.ID
			}
			asked[d.Kind][name] += d.Asked
			if unmet > 0 {
				left[d.Kind][name] += unmet
			}
		}
		want := map[DemandKind]map[string]int64{KindRequest: {}, KindGang: {}, KindRequestResources: {}}
		for _, r := range s.Requests {
			want[KindRequest][compact(r.Bundle)+compact(r.Selectors)] += r.Count
		}
		for _, r := range append(s.Constraint, s.KeptResources...) {
			want[KindRequestResources][compact(r.Bundle)+compact(r.Selectors)] += r.Count
		}
		for _, g := range s.Gangs {
			want[KindGang][g.ID]++
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("asked (-snapshot +summary): %s", diff)
		}
		unmet := map[DemandKind]map[string]int64{KindRequest: {}, KindGang: {}, KindRequestResources: {}}
		for _, u := range plan.InfeasibleRequests {
			unmet[KindRequest][compact(u.Bundle)+compact(u.Selectors)] += u.Count
		}
		for _, u := range plan.InfeasibleRequestResources {
			unmet[KindRequestResources][compact(u.Bundle)+compact(u.Selectors)] += u.Count
		}
		for _, u := range plan.InfeasibleGangRequests {
			unmet[KindGang][u.ID]++
		}
		if diff := cmp.Diff(unmet, left); diff != "" {
			t.Errorf("unmet (-lists +summary): %s", diff)
		}
	})
}

func TestDemandForNothingIsNotSaidToBeServedByNodes(t *testing.T) {
	s := readText(t, `{"groups": [{"name": "g", "resources": {"CPU": 1}}], "pendingRequests": [{"resources": {}, "count": 1}], "pendingGangRequests": [
		{"id": "aa", "strategy": "STRICT_SPREAD", "bundles": [{}, {"CPU": 0}]}, {"id": "bb", "strategy": "PACK", "bundles": [{}]}]}`)
	for _, d := range Compute(s, Policy{}).Summary {
		want := "1 requires no resources, so nothing is launched for it"
		if d.Gang == nil {
			want = "1 requires no resources, so nothing is launched for it"
		}
		if got := d.Tally(); got != want {
			t.Errorf("%+v: %s, want %q", d, got, want)
		}
	}
}

func TestOnlyKubeRaysDefaultIsNoMaximum(t *testing.T) {
	for most, want := range map[string]string{
		"": "0 pods (min 0, no max)", `, "numOfHosts": 4`: "0 pods (min 0, no max)", `, "maxReplicas": 9`: "0 pods (min 0, max 9)",
		`, "maxReplicas": 1073741824, "numOfHosts": 4`: "0 pods (min 0, max 4294967296)",
	} {
		s := readText(t, `{"groups": [{"name": "g", "resources": {"CPU": 1}`+most+`}]}`)
		if got := Compute(s, Policy{}).Groups[0].Size(); got != want {
			t.Errorf("group%s: %s, want %s", most, got, want)
		}
	}
}
