package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func dial(t *testing.T, handler http.Handler) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := NewClient(server.URL+"/", server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestBothEndsUnderstandEachOther(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	client := dial(t, w.handler)

	clusters, err := client.Clusters(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apiv1.ClusterSummary{w.fleet[llm].summary(noon)}, clusters); diff != "" {
		t.Errorf("clusters (-served +read):\n%s", diff)
	}
	if clusters, err := client.Clusters(ctx, "elsewhere"); err != nil || len(clusters) != 0 {
		t.Errorf("clusters of another namespace: %v, %v", clusters, err)
	}
	cluster, err := client.Status(ctx, llm)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.fleet[llm].cluster(noon), cluster); diff != "" {
		t.Errorf("status (-served +read):\n%s", diff)
	}
	text, err := client.Snapshot(ctx, llm)
	if err != nil {
		t.Fatal(err)
	}
	var snapshot planner.Snapshot
	if err := json.Unmarshal(text, &snapshot); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.fleet[llm].Snapshot, snapshot); diff != "" {
		t.Errorf("snapshot (-served +read):\n%s", diff)
	}
}

func TestClientRequestsReadsAndClears(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	client := dial(t, w.handler)
	gpu := raydemand.Bundle{raydemand.GPU: raydemand.One}
	zone := selector(t, "zone", "us-1")[0]

	want := []raydemand.Request{
		{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 4},
		{Bundle: gpu, Count: 1, Selectors: []raydemand.Selector{zone}}, {Bundle: gpu, Count: 1},
	}
	kept, err := client.RequestResources(ctx, llm, apiv1.RequestResources{
		NumCPUs: 4, Bundles: []apiv1.AskedBundle{{Bundle: gpu}, {Bundle: gpu}}, BundleLabelSelectors: []apiv1.LabelSelector{zone, {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, kept.Requested); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if read, err := client.Requested(ctx, llm); err != nil || !cmp.Equal(read, kept) {
		t.Errorf("read %+v, %v; want %+v", read, err, kept)
	}
	if kept, err := client.RequestResources(ctx, llm, apiv1.RequestResources{}); err != nil || len(kept.Requested) != 0 {
		t.Errorf("the zero request keeps %+v, %v", kept, err)
	}
	if err := client.ClearRequested(ctx, llm); err != nil {
		t.Errorf("clearing: %v", err)
	}
}

func TestClientReturnsTheServersProblem(t *testing.T) {
	client := dial(t, newWorld(t).handler)
	_, err := client.Status(context.Background(), nodepool.ClusterKey{Namespace: "ml", Name: "other"})
	var problem *apiv1.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusNotFound {
		t.Fatalf("error %v does not hold the problem", err)
	}
	if !strings.Contains(err.Error(), "there is no RayCluster ml/other") || !strings.HasPrefix(err.Error(), "http://") || strings.Contains(err.Error(), "/v1/") {
		t.Errorf("error says %q", err)
	}
}

func TestClientSaysWhatAnsweredInstead(t *testing.T) {
	client := dial(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }))
	if _, err := client.Clusters(context.Background(), ""); err == nil || !strings.Contains(err.Error(), "502 Bad Gateway") {
		t.Errorf("error %v", err)
	}
	for _, address := range []string{"", "127.0.0.1:8090", "ftp://host", "http://", ":"} {
		if _, err := NewClient(address, nil); err == nil {
			t.Errorf("address %q was taken", address)
		}
	}
}

func TestAnAddressWithoutASchemeIsToldHowToWriteIt(t *testing.T) {
	for _, address := range []string{"127.0.0.1:8090", "localhost:8090", "heliostat"} {
		if _, err := NewClient(address, nil); err == nil || !strings.Contains(err.Error(), "write https://host:port") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAServerThatIsNotStartedIsToldFromOneThatFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client, err := NewClient(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Clusters(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "nothing listens there: want a server that has been started") {
		t.Errorf("%v", err)
	}
}
