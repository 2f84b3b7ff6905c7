package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestPlansWaitForASlotAndAPanicIsAnError(t *testing.T) {
	plans := newPlanLimits(1)
	leave, err := plans.enter(t.Context(), "bob")
	must(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = runPlan(over, plans, "ada", func() int { return 1 })
	var p *problem
	if !errors.As(err, &p) || p.Kind != kindUnavailable {
		t.Errorf("without a free place: %v", err)
	}
	leave()
	if _, err := runPlan(t.Context(), plans, "ada", func() int { panic("odd") }); err == nil || !strings.Contains(err.Error(), "odd") {
		t.Errorf("a panic is %v", err)
	}
	if got, err := runPlan(t.Context(), plans, "ada", func() int { return 7 }); got != 7 || err != nil {
		t.Errorf("after a panic: %d, %v", got, err)
	}
	if left := len(plans.calls.of); left != 0 {
		t.Errorf("%d callers are remembered", left)
	}
}

func TestACanceledPlanKeepsItsSlotUntilItReturns(t *testing.T) {
	plans := newPlanLimits(1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	_, err := runPlan(ctx, plans, "ada", func() int {
		cancel()
		<-ended
		return 1
	})
	var p *problem
	if !errors.As(err, &p) || p.Kind != kindTimedOut {
		t.Errorf("a plan that takes too long: %v", err)
	}
	if len(plans.slots) != 1 {
		t.Error("a plan that still runs has lost its place")
	}
	close(ended)
	if got, err := runPlan(t.Context(), plans, "ada", func() int { return 7 }); got != 7 || err != nil {
		t.Errorf("after its end: %d, %v", got, err)
	}
}

func TestACallerMayHaveSomePlansAtOnce(t *testing.T) {
	plans := newPlanLimits(2 * maxPlansOfCaller)
	for range maxPlansOfCaller {
		if _, err := plans.enter(t.Context(), "greedy"); err != nil {
			t.Fatal(err)
		}
	}
	var slower *access.ThrottledError
	if _, err := plans.enter(t.Context(), "greedy"); !errors.As(err, &slower) || !strings.Contains(err.Error(), "already running or waiting") {
		t.Errorf("one plan more: %v", err)
	}
	if got, err := runPlan(t.Context(), plans, "ada", func() int { return 7 }); got != 7 || err != nil {
		t.Errorf("another caller: %d, %v", got, err)
	}
}

func dial(t *testing.T, handler http.Handler) *apiv1.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	caller, err := apiv1.NewClient(server.URL+"/", server.Client())
	must(t, err)
	return caller
}

func TestTheClientReadsWhatTheServerShows(t *testing.T) {
	w, ctx := newFixture(t), context.Background()
	caller := dial(t, w.handler)

	clusters, err := caller.Clusters(ctx, "")
	must(t, err)
	if diff := cmp.Diff([]apiv1.ClusterSummary{w.fleet[llm].Summary(noon)}, clusters); diff != "" {
		t.Errorf("clusters (-served +read):\n%s", diff)
	}
	if clusters, err := caller.Clusters(ctx, "elsewhere"); err != nil || len(clusters) != 0 {
		t.Errorf("clusters of another namespace: %v, %v", clusters, err)
	}
	cluster, err := caller.Status(ctx, llm)
	must(t, err)
	if diff := cmp.Diff(w.fleet[llm].Status(noon), cluster); diff != "" {
		t.Errorf("status (-served +read):\n%s", diff)
	}
	text, err := caller.Snapshot(ctx, llm)
	must(t, err)
	var snapshot planner.Snapshot
	must(t, json.Unmarshal(text, &snapshot))
	if diff := cmp.Diff(w.fleet[llm].Snapshot, snapshot); diff != "" {
		t.Errorf("snapshot (-served +read):\n%s", diff)
	}
}

func TestTheClientSetsReadsAndClearsARequest(t *testing.T) {
	w, ctx := newFixture(t), context.Background()
	caller := dial(t, w.handler)
	gpu := raydemand.Bundle{raydemand.GPU: raydemand.One}
	zone := selector(t, "zone", "us-1")[0]

	want := []raydemand.Request{
		{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 4},
		{Bundle: gpu, Count: 1, Selectors: []raydemand.Selector{zone}}, {Bundle: gpu, Count: 1},
	}
	kept, err := caller.RequestResources(ctx, llm, apiv1.RequestResources{
		NumCPUs: 4, Bundles: []raydemand.Request{{Bundle: gpu, Count: 1}, {Bundle: gpu, Count: 1}}, BundleLabelSelectors: []apiv1.LabelSelector{zone, {}},
	})
	must(t, err)
	if diff := cmp.Diff(want, kept.Requested); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if read, err := caller.Requested(ctx, llm); err != nil || !cmp.Equal(read, kept) {
		t.Errorf("read %+v, %v; want %+v", read, err, kept)
	}
	if kept, err := caller.RequestResources(ctx, llm, apiv1.RequestResources{}); err != nil || len(kept.Requested) != 0 {
		t.Errorf("the zero request keeps %+v, %v", kept, err)
	}
	if answer := w.call(http.MethodDelete, llmPath+"/request_resources", ""); answer.Code != http.StatusNoContent {
		t.Errorf("clearing: %d", answer.Code)
	}
}

func TestTheClientReturnsTheServersProblem(t *testing.T) {
	caller := dial(t, newFixture(t).handler)
	_, err := caller.Status(context.Background(), nodepool.ClusterKey{Namespace: "ml", Name: "other"})
	var problem *apiv1.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusNotFound {
		t.Fatalf("error %v does not hold the problem", err)
	}
	if !strings.Contains(err.Error(), "there is no RayCluster ml/other") || !strings.HasPrefix(err.Error(), "http://") || strings.Contains(err.Error(), "/v1/") {
		t.Errorf("error says %q", err)
	}
}
