package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// statesOf describes each request: a=Capped 1+2/5 (capped) has one bundle served and two waiting of five.
func statesOf(plan Plan) string {
	var all []string
	for _, r := range plan.Requests {
		name := r.ID
		if r.Plain {
			name = "plain"
		}
		all = append(all, fmt.Sprintf("%s=%s %d+%d/%d (%s)", name, r.State, r.Served, r.Waiting, r.Asked, r.Reason.Code))
	}
	return strings.Join(all, ", ")
}

func TestARequestIsServedByGroupsAndPodsThatAreNamed(t *testing.T) {
	plan := Compute(readText(t, `{"groups": [{"name": "gpu", "resources": {"GPU": 1, "CPU": 8}, "maxReplicas": 4}], "nodes": [
		{"pod": "gpu-b", "group": "gpu", "state": "RUNNING", "total": {"GPU": 1, "CPU": 8}, "available": {}},
		{"pod": "gpu-a", "group": "gpu", "state": "IDLE", "total": {"GPU": 1, "CPU": 8}, "available": {"GPU": 1, "CPU": 8}, "idleSeconds": 3},
		{"pod": "gpu-c", "group": "gpu", "state": "PENDING", "since": "2026-01-01T00:00:00Z"}],
		"ownedRequests": [{"id": "first", "owner": "ann", "priority": 1, "requests": [{"resources": {"GPU": 1}, "count": 1}]},
		{"id": "second", "owner": "bob", "requests": [{"resources": {"GPU": 1}, "count": 3}]}]}`), Policy{})
	want := []RequestPlan{
		{ID: "first", Owner: "ann", Priority: 1, State: raydemand.RequestSatisfied, Reason: Reason{Code: "satisfied", Message: "workers that have joined Ray have room for all of it"},
			Asked: 1, Served: 1, Groups: []RequestGroup{{Name: "gpu", Pods: 1}}, Pods: []string{"gpu-a"}},
		{ID: "second", Owner: "bob", State: raydemand.RequestWaiting, Reason: Reason{Code: "launch", Message: "launching pods for 1 of 3 bundles"},
			Asked: 3, Served: 1, Waiting: 2, Pods: []string{"gpu-b", "gpu-c"},
			Groups: []RequestGroup{{Name: "gpu", Pods: 3, Waiting: 2, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}},
	}
	if diff := cmp.Diff(want, plan.Requests); diff != "" {
		t.Errorf("requests (-want +got): %s", diff)
	}
}

func restSummary(plan Plan) map[string]int64 {
	asked := map[string]int64{}
	for _, d := range plan.Summary {
		if d.OverREST {
			asked[Describe(raydemand.Request{Bundle: d.Resources, Selectors: d.Selectors, Slice: d.Slice})] += d.Asked
			if sum := d.Served + d.Waiting + d.Launching + d.Impossible + d.Capped + d.Closed + d.CoolingDown; sum != d.Asked {
				asked["not accounted for"] += d.Asked - sum
			}
		}
	}
	return asked
}

func TestNothingThatAnOwnerAsksForIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawOwned(t)
		plan := Compute(s, Policy{})
		var all []raydemand.Request
		for i, list := range s.RequestLists() {
			if i >= 2 {
				all = append(all, list...)
			}
		}
		if diff := cmp.Diff(byKind(all), restSummary(plan)); diff != "" {
			t.Errorf("asked and reported (-want +got): %s", diff)
		}
		for _, r := range plan.Requests {
			if left := r.Asked - r.Served - r.Waiting; left < 0 || left > 0 == (r.State == raydemand.RequestSatisfied || r.State == raydemand.RequestWaiting) {
				t.Errorf("%s: %+v", compact(s), r)
			}
		}
	})
}

func TestOwnersTogetherLaunchWhatOneWouldThatAsksForAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawOwned(t)
		plan := Compute(s, Policy{})
		if slices.ContainsFunc(plan.Requests, func(r RequestPlan) bool {
			return r.State != raydemand.RequestSatisfied && r.State != raydemand.RequestWaiting
		}) {
			return
		}
		one := s
		for _, of := range s.OwnedRequests {
			one.KeptResources = append(slices.Clone(one.KeptResources), of.Requests...)
		}
		one.OwnedRequests = nil
		if diff := cmp.Diff(plan.Launch, Compute(one, Policy{}).Launch); diff != "" {
			t.Errorf("launches (-owners +one): %s\n%s", diff, compact(s))
		}
	})
}

func TestAllOrNothingIsAllOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawOwned(t)
		for _, r := range Compute(s, Policy{}).Requests {
			whole := r.Plain || slices.ContainsFunc(s.OwnedRequests, func(of raydemand.Owned) bool { return of.ID == r.ID && of.AllOrNothing })
			if had := r.Served + r.Waiting; whole && had != 0 && had != r.Asked {
				t.Errorf("%s has %d of %d", r.ID, had, r.Asked)
			}
		}
	})
}

// had counts the bundles of each request that are served or on their way.
func had(plan Plan) map[string]int64 {
	counts := map[string]int64{}
	for _, r := range plan.Requests {
		counts[r.ID] = r.Served + r.Waiting
	}
	return counts
}

// TestADeletedRequestTakesNothingFromOthers has one kind of worker and no all-or-nothing requests: otherwise a deleted
// request could make room for an all-or-nothing one, which then comes before others.
func TestADeletedRequestTakesNothingFromOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawOwned(t)
		s.Groups = s.Groups[:min(len(s.Groups), 1)]
		for i := range s.OwnedRequests {
			of := &s.OwnedRequests[i]
			of.AllOrNothing, of.Requests = false, []raydemand.Request{{Bundle: someBundles[0], Count: rapid.Int64Range(1, 20).Draw(t, "count")}}
		}
		s.Constraint, s.KeptResources = nil, nil
		before := had(Compute(s, Policy{}))
		gone := rapid.IntRange(0, len(s.OwnedRequests)-1).Draw(t, "gone")
		less := s
		less.OwnedRequests = slices.Delete(slices.Clone(s.OwnedRequests), gone, gone+1)
		after := had(Compute(less, Policy{}))
		for _, id := range slices.Sorted(maps.Keys(after)) {
			if after[id] < before[id] {
				t.Errorf("%s had %d, and %d after %s is gone: %s", id, before[id], after[id], s.OwnedRequests[gone].ID, compact(s))
			}
		}
	})
}

// TestEqualRequestsThatFailAreTriedOnce: one that asks for something else has its trial after more than a plan makes.
func TestEqualRequestsThatFailAreTriedOnce(t *testing.T) {
	s := Snapshot{LaunchConfigCheckDisabled: true, Groups: []Group{
		{Name: "gpu", Max: 2, NumOfHosts: 1, Resources: raydemand.Bundle{"GPU": raydemand.One}},
		{Name: "cpu", Max: 2, NumOfHosts: 1, Resources: raydemand.Bundle{"CPU": raydemand.One}}}}
	for i := range 2100 {
		s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{ID: fmt.Sprintf("r%04d", i), Owner: "ann", AllOrNothing: true,
			Requests: []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 3}}})
	}
	s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{ID: "z", Owner: "bob",
		Requests: []raydemand.Request{{Bundle: raydemand.Bundle{"CPU": raydemand.One}, Count: 1}}})
	if plan := Compute(s, Policy{}); plan.Launch["cpu"] != 1 || plan.Launch["gpu"] != 0 {
		t.Errorf("launches %v", plan.Launch)
	}
}

// TestRequestsThatNothingServesDelayNoOthers: they cost no trial, so those after them are evaluated.
func TestRequestsThatNothingServesDelayNoOthers(t *testing.T) {
	s := Snapshot{Groups: []Group{{Name: "g", Resources: bundleOf(96, 8, 256), Max: 100, NumOfHosts: 1}}}
	for i := range 300 {
		s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{ID: fmt.Sprint("no-", i), Priority: 1, Requests: []raydemand.Request{{
			Count: 2, Bundle: raydemand.Bundle{"GPU": raydemand.Whole(16), "CPU": raydemand.Whole(int64(i + 1))}}}})
	}
	s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{ID: "yes", Requests: []raydemand.Request{{Count: 2, Bundle: raydemand.Bundle{"GPU": raydemand.Whole(8)}}}})
	plan := Compute(s, Policy{})
	if got := statesOf(Plan{Requests: plan.Requests[len(plan.Requests)-1:]}); got != "yes=Waiting 0+2/2 (launch)" || plan.Launch["g"] != 2 {
		t.Errorf("launches %v, and %s", plan.Launch, got)
	}
}
