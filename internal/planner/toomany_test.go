package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gpuOwned asks for two GPUs, in this many shapes, of which only the first asks for GPUs.
func gpuOwned(id string, priority int32, shapes int) raydemand.Owned {
	of := raydemand.Owned{ID: id, Priority: priority, Requests: []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 2}}}
	for range shapes - 1 {
		of.Requests = append(of.Requests, raydemand.Request{Bundle: raydemand.Bundle{}, Count: 0})
	}
	return of
}

func gpuWorld(owned ...raydemand.Owned) Snapshot {
	return Snapshot{Groups: []Group{{Name: "gpu", Resources: raydemand.Bundle{"GPU": raydemand.One}, Max: 5000, NumOfHosts: 1}}, OwnedRequests: owned}
}

func TestRequestsBeyondTheBoundAreReported(t *testing.T) {
	s := gpuWorld()
	for i := range search.MaxOwned + 1 {
		s.OwnedRequests = append(s.OwnedRequests, gpuOwned(fmt.Sprintf("r%04d", i), int32(min(i, 1)), 1))
	}
	plan := Compute(s, Policy{})
	if first := plan.Requests[0]; first.ID != "r0000" || first.State != raydemand.RequestCapped || first.Reason.Code != raydemand.CodeTooMany || first.Asked != 2 {
		t.Errorf("the one of the lowest priority: %+v", first)
	}
	if got := plan.Launch["gpu"]; got != 2*search.MaxOwned || len(plan.Requests) != search.MaxOwned+1 {
		t.Errorf("launches %d for %d requests", got, len(plan.Requests))
	}
	if len(plan.Findings) != 1 || plan.Findings[0].Code != model.FindingTooManyRequests || plan.Findings[0].Seen != "1001 with 1001 shapes" {
		t.Errorf("findings %v", plan.Findings)
	}
}

// TestShapesBeyondTheBoundAreReported: a request that is too large does not exclude the requests after it.
func TestShapesBeyondTheBoundAreReported(t *testing.T) {
	plan := Compute(gpuWorld(
		gpuOwned("a-huge", 9, search.MaxOwnedShapes+1), gpuOwned("b-most", 8, search.MaxOwnedShapes-1), gpuOwned("c-two", 7, 2), gpuOwned("d-one", 6, 1), gpuOwned("e-one", 5, 1)), Policy{})
	want := "a-huge=Capped 0+0/2 (too_many), b-most=Waiting 0+2/2 (launch), c-two=Capped 0+0/2 (too_many), d-one=Waiting 0+2/2 (launch), e-one=Capped 0+0/2 (too_many)"
	if got := statesOf(plan); got != want {
		t.Errorf("becomes %s, want %s", got, want)
	}
	if plan.Launch["gpu"] != 4 {
		t.Errorf("launches %v", plan.Launch)
	}
	if got := plan.Requests[2].Reason.Message; !strings.Contains(got, "5000 shapes in total, shared fairly among owners; this request, with 2 shapes") {
		t.Errorf("c-two gets %s", got)
	}
	if len(plan.Findings) != 1 || plan.Findings[0].Seen != "5 with 10004 shapes" || !strings.Contains(plan.Findings[0].Why, "; 3 requests do not count") {
		t.Errorf("findings %v", plan.Findings)
	}
}

// TestWhatIsSatisfiedKeepsItsPlaceWithinTheBound, even if many older requests get its priority; a higher priority comes
// first.
func TestWhatIsSatisfiedKeepsItsPlaceWithinTheBound(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	satisfied := gpuOwned("z-satisfied", 1, search.MaxOwnedShapes/2)
	satisfied.Since, satisfied.SatisfiedSince = now, now
	older := gpuOwned("older", 1, search.MaxOwnedShapes/2+1)
	higher := older
	higher.ID, higher.Priority, higher.Since = "higher", 2, now.Add(time.Hour)
	for want, owned := range map[string][]raydemand.Owned{
		"older=Capped 0+0/2 (too_many), z-satisfied=Waiting 0+2/2 (launch)":  {older, satisfied},
		"higher=Waiting 0+2/2 (launch), z-satisfied=Capped 0+0/2 (too_many)": {higher, satisfied},
	} {
		if got := statesOf(Compute(gpuWorld(owned...), Policy{})); got != want {
			t.Errorf("becomes %s, want %s", got, want)
		}
	}
}

// TestOneOwnersExcessIsItsOwn: an owner that asks for far too much, with a higher priority and earlier, takes neither
// the number of requests nor the shapes from owners within their share. It uses what they leave.
func TestOneOwnersExcessIsItsOwn(t *testing.T) {
	late := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for name, flood := range map[string]struct{ requests, shapes, kept int }{
		"with many requests": {requests: 2 * search.MaxOwned, shapes: 1, kept: search.MaxOwned - 2},
		"with many shapes":   {requests: 20, shapes: search.MaxOwnedShapes / 10, kept: 9},
	} {
		t.Run(name, func(t *testing.T) {
			s := gpuWorld()
			for i := range flood.requests {
				of := gpuOwned(fmt.Sprintf("flood-%04d", i), 9, flood.shapes)
				of.Owner = "mallory"
				s.OwnedRequests = append(s.OwnedRequests, of)
			}
			for _, id := range []string{"small", "wide"} {
				of := gpuOwned(id, 0, 1+len(id))
				of.Owner, of.Since = "ann-"+id, late
				s.OwnedRequests = append(s.OwnedRequests, of)
			}
			kept := 0
			for _, plan := range Compute(s, Policy{}).Requests {
				in := plan.Reason.Code != raydemand.CodeTooMany
				if plan.Owner == "mallory" && in {
					kept++
				}
				if plan.Owner != "mallory" && !in {
					t.Errorf("%s of %s: %s: %s", plan.ID, plan.Owner, plan.State, plan.Reason.Message)
				}
			}
			if kept != flood.kept {
				t.Errorf("%d requests of the flood count, want %d", kept, flood.kept)
			}
		})
	}
}

// TestNoRoomInABoundStaysUnused: three owners with a request each that exceeds an equal share; two of them fit.
func TestNoRoomInABoundStaysUnused(t *testing.T) {
	s := gpuWorld()
	for _, id := range []string{"a", "b", "c"} {
		of := gpuOwned(id, 0, search.MaxOwnedShapes/2)
		of.Owner = id
		s.OwnedRequests = append(s.OwnedRequests, of)
	}
	want := "a=Waiting 0+2/2 (launch), b=Waiting 0+2/2 (launch), c=Capped 0+0/2 (too_many)"
	if got := statesOf(Compute(s, Policy{})); got != want {
		t.Errorf("becomes %s, want %s", got, want)
	}
}
