package kube

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/requests"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// written is the body of the last PATCH.
func written(t *testing.T, server *apiServer) string {
	t.Helper()
	for i := len(server.requests) - 1; i >= 0; i-- {
		if r := server.requests[i]; r.Method == http.MethodPatch {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
	}
	t.Fatal("nothing was written")
	return ""
}

// tracing writes down the traces "call" and "growth".
func tracing() Traces {
	return Traces{
		Call:    func(context.Context) string { return "call" },
		ScaleUp: func(context.Context, time.Time) string { return "growth" },
	}
}

func TestAPatchThatGrowsKeepsItsTrace(t *testing.T) {
	const bare = ", annotations: {heliostat.dev/mode: managed}"
	for name, c := range map[string]struct {
		stored string
		to     int
		want   string
	}{
		"beside other annotations": {twoGroups, 3, `{"op":"add","path":"/metadata/annotations/heliostat.dev~1scale-up-trace","value":"growth"}`},
		"as the first annotation":  {strings.Replace(twoGroups, bare, "", 1), 3, `{"op":"add","path":"/metadata/annotations","value":{"heliostat.dev/scale-up-trace":"growth"}}`},
		"not when it shrinks":      {twoGroups, 1, ""},
	} {
		server := &apiServer{stored: rayClusterOf(t, c.stored, "9")}
		m := managerOf(t, server, rayClusterOf(t, c.stored, "8"))
		m.options.Traces = tracing()
		change := nodepool.Change{Cluster: llm, UID: "u-1", Targets: []nodepool.Target{{Group: "cpu", Index: 0, From: 2, Replicas: c.to}}}
		if _, err := m.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if got := written(t, server); !strings.Contains(got, c.want) || strings.Contains(got, "growth") != (c.want != "") {
			t.Errorf("%s: wrote %s, want %s", name, got, c.want)
		}
	}
}

func TestResourceRequestsKeepTheTraceOfTheirCall(t *testing.T) {
	server := &apiServer{stored: rayClusterOf(t, twoGroups, "9")}
	m := managerOf(t, server, rayClusterOf(t, twoGroups, "9"))
	m.options.Traces = tracing()
	since := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ask := []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: 1}}
	if err := m.annotateFresh(t.Context(), llm, m.withTrace(t.Context(), map[string]any{}, ask)); err != nil {
		t.Fatal(err)
	}
	if got := written(t, server); !strings.Contains(got, `"heliostat.dev/resource-requests-trace":"call"`) {
		t.Errorf("wrote %s", got)
	}
	if err := m.annotateFresh(t.Context(), llm, m.withTrace(t.Context(), map[string]any{}, nil)); err != nil {
		t.Fatal(err)
	}
	if got := written(t, server); !strings.Contains(got, `"heliostat.dev/resource-requests-trace":null`) {
		t.Errorf("what is cleared keeps its trace: %s", got)
	}

	object := rayClusterOf(t, twoGroups, "9")
	object["metadata"].(map[string]any)["annotations"] = map[string]any{
		rayobject.RequestTraceAnnotation: "call", rayobject.RequestedSinceAnnotation: "2026-11-21T12:00:00Z", rayobject.ScaleUpTraceAnnotation: "growth",
	}
	call, at, scaleUp := managerOf(t, server, object).Kept(llm)
	if call != "call" || !at.Equal(since) || scaleUp != "growth" {
		t.Errorf("kept are %q of %v and %q", call, at, scaleUp)
	}
	if call, at, scaleUp := managerOf(t, server, rayClusterOf(t, twoGroups, "9")).Kept(llm); call != "" || !at.IsZero() || scaleUp != "" {
		t.Errorf("of a RayCluster that keeps none: %q, %v, %q", call, at, scaleUp)
	}
}

func TestAResourceRequestKeepsTheTraceOfItsCall(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	m := managerOf(t, &apiServer{}, rayClusterOf(t, twoGroups, "9"))
	if got := m.callTrace(t.Context(), now); got != "" {
		t.Errorf("without traces %q is kept", got)
	}
	m.options.Traces = tracing()
	wanted := nodepool.OwnedRequest{Cluster: llm, Trace: m.callTrace(t.Context(), now)}
	wanted.ID, wanted.Owner = "nightly", "ada"
	wanted.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: 1}}
	object, err := requests.Encode(&wanted)
	if err != nil {
		t.Fatal(err)
	}
	if got := requests.Decode(object).Trace; got != "call 2026-11-21T12:00:00Z" {
		t.Errorf("kept is %q", got)
	}
	ignore := func(nodepool.ClusterKey) {}
	m.requests = requests.New(requests.Config{Changed: ignore, StatusChanged: ignore})
	m.requests.Set(requests.Decode(object))
	if call, at, _ := m.Kept(llm); call != "call" || !at.Equal(now) {
		t.Errorf("the RayCluster is asked for by %q at %v", call, at)
	}
}
