package controller

import (
	"errors"
	"testing"

	"heliostat.dev/heliostat/internal/planner"
)

// TestADecisionSaysWhatItHoldsBack: the in-flight cap is the policy's.
func TestADecisionSaysWhatItHoldsBack(t *testing.T) {
	m, v, s := newMemory(), viewOf(0), settings()
	v.State.Demand.Requests = requests(5)
	s.Policy.MaxInFlight = 2
	m.Remember(&v, s)
	i, err := m.Decide(v, s, planned, nil)
	if err != nil || i.Launch["gpu"] != 2 || i.Held["gpu"] != 3 || m.AtRest(&v, &i) || m.Motion(&v, &i) != active {
		t.Errorf("launches %v, holds back %v, error %v; want 2 and 3 of 5, and no rest", i.Launch, i.Held, err)
	}
	targets, _, err := m.Targets(v, &i, s)
	if err != nil || len(targets) != 1 || targets[0].Replicas != 2 {
		t.Errorf("targets %+v, error %v", targets, err)
	}
}

func TestAPlanThatCannotBeComputedDecidesNothing(t *testing.T) {
	m, v := newMemory(), viewOf(1)
	v.State.Demand.Requests = requests(5)
	m.Remember(&v, settings())
	failing := func(s *planner.Snapshot) (planner.Plan, error) {
		p, _ := planned(s)
		return p, errors.New("the process ends")
	}
	if i, err := m.Decide(v, settings(), failing, nil); err == nil || len(i.Launch)+len(i.Plan.Groups) > 0 || i.Any() {
		t.Errorf("decided %+v, error %v", i, err)
	}
}
