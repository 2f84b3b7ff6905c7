package planbudget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func withShapes(n int) *planner.Snapshot {
	var owned raydemand.Owned
	for i := range n {
		owned.Requests = append(owned.Requests, raydemand.Request{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.Whole(int64(1 + i))}, Count: 1})
	}
	return &planner.Snapshot{OwnedRequests: []raydemand.Owned{owned}}
}

func TestAHeavyPlanIsQueuedAndALightOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plans := New(time.Second)
		plans.slot <- struct{}{} // a heavy plan is being computed
		made := make(chan int, 2)
		for _, n := range []int{HeavyShapes, HeavyShapes - 1} {
			go func() {
				if _, _, err := plans.Compute(t.Context(), withShapes(n), 0); err != nil {
					t.Error(err)
				}
				made <- n
			}()
		}
		if first := <-made; first != HeavyShapes-1 {
			t.Errorf("the plan of %d shapes is computed first", first)
		}
		<-plans.slot
		<-made
	})
}

func TestAHeavyPlanStopsWaitingWhenTheProcessEnds(t *testing.T) {
	plans := New(time.Second)
	plans.slot <- struct{}{} // a heavy plan is being computed
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := plans.Compute(ctx, withShapes(HeavyShapes), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the end of the context", err)
	}
}

func TestABudgetFollowsTheSpeedOfPlans(t *testing.T) {
	b := New(2 * time.Second)
	if got := b.work(0); got != 2*looksPerSecond {
		t.Errorf("at first %d", got)
	}
	if got := b.work(1500 * time.Millisecond); got != looksPerSecond/2 {
		t.Errorf("%d for the half second that is left", got)
	}
	if got := b.work(time.Hour); got != looksPerSecond/4 {
		t.Errorf("%d when the time is over, want an eighth", got)
	}
	for range 100 {
		b.learn(looksPerSecond/10, time.Second)
	}
	if got := b.work(0); float64(got) > looksPerSecond/5 || float64(got) < looksPerSecond/6 {
		t.Errorf("%d after plans that took ten times as long", got)
	}
	b.learn(10, time.Hour) // a plan without work shows nothing
	for range 100 {
		b.learn(looksPerSecond, 24*time.Hour)
	}
	if got := float64(b.work(0)); got < 2*looksPerSecond/mostOff-1e6 {
		t.Errorf("%v without CPU time", got)
	}
}
