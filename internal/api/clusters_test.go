package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestPlansWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{plans: make(chan struct{}, 1)}
		leave, err := s.enterPlan(t.Context())
		must(t, err)
		var p *problem
		if _, err := s.enterPlan(t.Context()); !errors.As(err, &p) || p.Kind != kindUnavailable {
			t.Errorf("without a free place: %v", err)
		}
		time.AfterFunc(time.Second, leave)
		if _, err := s.enterPlan(t.Context()); err != nil {
			t.Errorf("after a second: %v", err)
		}
	})
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
	snapshot := readAnswer[planner.Snapshot](t, w.call(http.MethodGet, llmPath+"/snapshot", ""))
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
	if read := readAnswer[apiv1.Requested](t, w.call(http.MethodGet, llmPath+"/request_resources", "")); !cmp.Equal(read, kept) {
		t.Errorf("read %+v, want %+v", read, kept)
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
