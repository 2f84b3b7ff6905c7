package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
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

// fakeShadow compares one cluster.
type fakeShadow struct{}

func (fakeShadow) Comparison(key nodepool.ClusterKey) apiv1.ShadowComparison {
	if key != llm {
		return apiv1.ShadowComparison{}
	}
	agreement, lead := 0.5, -2.5
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	reason := apiv1.Reason{Code: "launch", Message: "for work"}
	return apiv1.ShadowComparison{Writer: "python-requests", Since: &began, ComparedSeconds: 60, Agreement: &agreement, TheirsFirst: 1, MedianLeadSeconds: &lead,
		Groups: []apiv1.ShadowGroup{{Name: "gpu", Ours: 2, Theirs: 1, Reason: reason}},
		Differences: []apiv1.ShadowDifference{
			{At: began, Group: "gpu", Ours: 2, Theirs: 1, Outcome: apiv1.Differs, Writer: "python-requests", Reason: reason},
			{At: began, Until: &began, Group: "gpu", Ours: 1, Theirs: 1, Outcome: apiv1.TheirsFirst, LeadSeconds: &lead, Reason: reason},
		}}
}

func TestTheClientReadsTheComparison(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Shadow = fakeShadow{} })
	w.fleet[llm] = View{Decision: addon.Decision{Cluster: llm}}
	got, err := dial(t, w.handler).Shadow(context.Background(), llm)
	if diff := cmp.Diff(fakeShadow{}.Comparison(llm), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAComparisonCanBeEmpty(t *testing.T) {
	w := newFixture(t)
	w.fleet[llm] = View{Decision: addon.Decision{Cluster: llm}}
	answer := w.call(http.MethodGet, llmPath+"/shadow", "")
	loadSpec(t).mustMatch("ShadowComparison", answer.Body.Bytes())
	if answer.Code != http.StatusOK {
		t.Errorf("answers %d: %s", answer.Code, answer.Body)
	}
	if answer := w.call(http.MethodGet, "/v1/namespaces/ml/rayclusters/nobody/shadow", ""); answer.Code != http.StatusNotFound {
		t.Errorf("of no cluster: %d: %s", answer.Code, answer.Body)
	}
}
