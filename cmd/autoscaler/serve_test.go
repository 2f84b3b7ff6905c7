package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestServeNamesBadFlagsBeforeAnythingStarts(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("RAY_CLUSTER_NAME", "")
	t.Setenv("RAY_CLUSTER_NAMESPACE", "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"autoscaler", "serve", "--mode", "sometimes"}, "mode"},
		{[]string{"autoscaler", "serve", "--log-format", "xml"}, "log format"},
		{[]string{"autoscaler", "serve", "--poll-fast", "-1s"}, "fast poll"},
		{[]string{"autoscaler", "serve", "--poll-fast", "soon"}, "poll-fast"},
		{[]string{"autoscaler", "serve", "--max-in-flight", "-1"}, "in-flight"},
		{[]string{"autoscaler", "serve", "--kubeconfig", "/does/not/exist"}, "/does/not/exist"},
		{[]string{"autoscaler", "serve"}, "--kubeconfig"},
		{[]string{"autoscaler", "serve", "now"}, "now"},
		{[]string{"autoscaler", "serve", "--cluster-autoscaler-namespace", "Kube System"}, "Kube System"},
		{[]string{"autoscaler", "serve", "--resource", "example.com/gpu=large"}, "example.com/gpu=large"},
		{[]string{"autoscaler", "serve", "--resource", "example.com/gpu=mps", "--pool-label", "example.com/pool"}, "--kubeconfig"},
		{[]string{"ray", "kuberay-autoscaler", "--cluster-name", "llm", "--cluster-namespace", "ml", "--resource", "gpu=mps"}, "gpu=mps"},
		{[]string{"ray", "kuberay-autoscaler"}, "--cluster-name"},
		{[]string{"ray", "kuberay-autoscaler", "--cluster-name", "llm"}, "--cluster-namespace"},
	} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), c.args, strings.NewReader(""), &out, &errOut)
		if code != exitBadInput || !strings.Contains(errOut.String(), c.want) {
			t.Errorf("%v: exit %d, %q; want exit 2 naming %q", c.args, code, errOut.String(), c.want)
		}
	}
}

// Newer operators may pass flags that only Ray's own autoscaler knows.
func TestTheSidecarAcceptsFlagsOfRaysOwn(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	var out, errOut bytes.Buffer
	args := []string{"ray", "kuberay-autoscaler", "--cluster-name", "llm", "--cluster-namespace", "ml", "--some-new-flag", "5", "--another"}
	code := run(t.Context(), args, strings.NewReader(""), &out, &errOut)
	if code != exitBadInput || !strings.Contains(errOut.String(), "finding the API server") {
		t.Errorf("exit %d, %q; want it to get as far as looking for the API server", code, errOut.String())
	}
}

func decision() *controller.Decision {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return &controller.Decision{
		Cluster: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, At: at, Took: 3 * time.Millisecond, ReadAt: at.Add(-2 * time.Second),
		Mode: nodepool.Managed, Why: planner.Reason{Message: "managed by the default"}, RayErr: "the head does not answer",
		Kube: nodepool.Cluster{Freeze: true, RequestResources: []raydemand.Request{{Count: 3}}},
		Plan: planner.Plan{
			Groups:                 []planner.GroupPlan{{Name: "gpu", Current: 1, Desired: 2, Max: 4}},
			InfeasibleRequests:     []planner.UnmetRequest{{Request: raydemand.Request{Count: 5}, Reason: planner.Reason{Code: planner.Capped}}},
			InfeasibleGangRequests: []planner.UnmetGang{{Reason: planner.Reason{Code: planner.Capped}}},
		},
		Paused: "Ray's state could not be read",
		Recent: []controller.Action{
			{At: at, Kind: controller.ActionPatch, Result: controller.ResultOK, Group: "gpu", From: 1, To: 2, Message: "demand"},
			{At: at, Kind: controller.ActionDrain, Result: controller.ResultRefused, Group: "gpu", Pods: []string{"a"}},
			{At: at, Kind: controller.ActionPatch, Result: controller.ResultOK, Group: "gpu", From: 2, To: 1, Pods: []string{"a"}},
			{At: at, Kind: controller.ActionPatch, Result: controller.ResultOK, Group: "gpu", From: 1, To: 1, Pods: []string{"b"}},
		},
	}
}

func TestAViewShowsTheLatestChangesFirst(t *testing.T) {
	v := viewOf(decision())
	var actions []string
	for _, change := range v.Changes {
		actions = append(actions, change.Action)
	}
	if diff := cmp.Diff([]string{"replace", "scale-down", "drain-refused", "scale-up"}, actions); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if !v.Frozen || v.Paused == "" || v.Error != "the head does not answer" || v.ModeReason == "" || len(v.Requested) != 1 {
		t.Errorf("view = %+v", v)
	}
}
