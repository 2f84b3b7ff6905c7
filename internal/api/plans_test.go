package api

import (
	"context"
	"errors"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/access"
)

// plain returns a plan that ignores stop.
func plain(plan func() int) func(<-chan struct{}) (int, bool) {
	return func(<-chan struct{}) (int, bool) { return plan(), true }
}

func TestPlansWaitForASlotAndAPanicIsAnError(t *testing.T) {
	plans := newPlanLimits(1)
	leave, err := plans.enter(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = runPlan(over, plans, "ada", plain(func() int { return 1 }))
	var p *problem
	if !errors.As(err, &p) || p.Kind != kindUnavailable {
		t.Errorf("without a free place: %v", err)
	}
	leave()
	if _, err := runPlan(t.Context(), plans, "ada", plain(func() int { panic("odd") })); err == nil || !strings.Contains(err.Error(), "odd") {
		t.Errorf("a panic is %v", err)
	}
	if got, err := runPlan(t.Context(), plans, "ada", plain(func() int { return 7 })); got != 7 || err != nil {
		t.Errorf("after a panic: %d, %v", got, err)
	}
	if len(plans.callers) != 0 {
		t.Errorf("%d callers are remembered", len(plans.callers))
	}
}

func TestACanceledPlanKeepsItsSlotUntilItReturns(t *testing.T) {
	plans := newPlanLimits(1)
	ctx, cancel := context.WithCancel(t.Context())
	stopped, ended := make(chan struct{}), make(chan struct{})
	_, err := runPlan(ctx, plans, "ada", func(stop <-chan struct{}) (int, bool) {
		cancel()
		<-stop
		close(stopped)
		<-ended
		return 1, true
	})
	var p *problem
	if !errors.As(err, &p) || p.Kind != kindTimedOut {
		t.Errorf("a plan that takes too long: %v", err)
	}
	<-stopped
	if len(plans.slots) != 1 {
		t.Error("a plan that still runs has lost its place")
	}
	close(ended)
	if got, err := runPlan(t.Context(), plans, "ada", plain(func() int { return 7 })); got != 7 || err != nil {
		t.Errorf("after its end: %d, %v", got, err)
	}
}

// The timeout and the end of a plan that it stopped come at the same time. The answer must not depend on their order.
func TestAnIncompletePlanTimesOut(t *testing.T) {
	_, err := runPlan(t.Context(), newPlanLimits(1), "ada", func(<-chan struct{}) (int, bool) { return 0, false })
	var p *problem
	if !errors.As(err, &p) || p.Kind != kindTimedOut {
		t.Errorf("an incomplete plan: %v", err)
	}
}

func TestEachCallerRunsOnePlanAtATime(t *testing.T) {
	plans := newPlanLimits(2)
	leave, err := plans.enter(t.Context(), "greedy")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	if used := plans.Used(); used != 0.5 {
		t.Errorf("%v of two plans run, want one of them", used)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var slower *access.ThrottledError
	if _, err := plans.enter(over, "greedy"); !errors.As(err, &slower) || !strings.Contains(err.Error(), "one at a time") {
		t.Errorf("the second plan of one caller: %v", err)
	}
	if got, err := runPlan(t.Context(), plans, "ada", plain(func() int { return 7 })); got != 7 || err != nil {
		t.Errorf("another caller: %d, %v", got, err)
	}
	for range maxQueuedPlans {
		plans.join("greedy")
	}
	if _, err := plans.enter(over, "greedy"); !errors.As(err, &slower) || !strings.Contains(err.Error(), "already waiting") {
		t.Errorf("more plans than the queue has room for: %v", err)
	}
}

func TestACallWithoutASlotFreesTheQueueOfItsCaller(t *testing.T) {
	plans := newPlanLimits(1)
	leave, err := plans.enter(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	next := plans.join("ada")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var p *problem
	if _, err := plans.enter(over, "ada"); !errors.As(err, &p) || p.Kind != kindUnavailable {
		t.Errorf("without a free place: %v", err)
	}
	if len(next.running) != 0 {
		t.Error("her next call waits for one that is over")
	}
}
