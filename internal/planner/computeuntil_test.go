package planner

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// wide has a hundred groups and many shapes.
func wide() Snapshot {
	s := Snapshot{MaxWorkers: new(int)}
	*s.MaxWorkers = 100_000
	for i := range 100 {
		s.Groups = append(s.Groups, Group{Name: fmt.Sprintf("g%d", i), Max: 1000, NumOfHosts: 1, Resources: raydemand.Bundle{
			raydemand.CPU: raydemand.Whole(int64(1 + i*7%64)), raydemand.GPU: raydemand.Whole(int64(i % 9))}})
	}
	for i := range 500 {
		s.Requests = append(s.Requests, raydemand.Request{Count: int64(1 + i*31%400), Bundle: raydemand.Bundle{
			raydemand.CPU: raydemand.Amount(10_000 + i*977), raydemand.GPU: raydemand.Amount(i * 131 % 8 * 5000)}})
	}
	return s
}

// The test counts steps, because time depends on the machine: a plan that is stopped at its first step does no other.
func TestAPlanStopsWithItsCaller(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	s := wide()
	if plan, done := ComputeUntil(stop, s, s.Policy); done || len(plan.Groups) != 0 {
		t.Errorf("it is made nevertheless, of %d groups", len(plan.Groups))
	}
	if n := testing.AllocsPerRun(1, func() { ComputeUntil(stop, s, s.Policy) }); n > 100_000 {
		t.Errorf("it takes %v allocations before it is broken off", n)
	}
}

func TestAPlanThatIsWaitedForIsThatOfCompute(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "gpu", "resources": {"CPU": 8, "GPU": 1}, "maxReplicas": 4}], "pendingRequests": [{"resources": {"GPU": 1}, "count": 3}]}`)
	for name, stop := range map[string]chan struct{}{"never closed": make(chan struct{}), "nil": nil} {
		plan, done := ComputeUntil(stop, s, s.Policy)
		if diff := cmp.Diff(Compute(s, s.Policy), plan); !done || diff != "" {
			t.Errorf("%s: done is %v (-Compute +ComputeUntil):\n%s", name, done, diff)
		}
	}
}

func TestAnAnswerStopsWithItsCaller(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	s := wide()
	for name, q := range map[string]Question{"group": {Group: "g1"}, "demand": {Demand: &s.Requests[0]}} {
		if e, err := Explain(stop, s, s.Policy, q); !errors.Is(err, ErrBrokenOff) || len(e.Details) > 0 {
			t.Errorf("%s: %v, with %d details", name, err, len(e.Details))
		}
	}
}
