package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// fakeModes sets the modes of known clusters, and fails on demand.
type fakeModes struct {
	known   fakeFleet
	set     map[nodepool.ClusterKey]nodepool.Mode
	NextErr error
}

func (f *fakeModes) SetMode(_ context.Context, key nodepool.ClusterKey, mode nodepool.Mode) error {
	if err := f.NextErr; err != nil {
		f.NextErr = nil
		return err
	}
	if _, ok := f.known[key]; !ok {
		return nodepool.ErrGone
	}
	f.set[key] = mode
	return nil
}

func TestManagingTwiceIsNotAnError(t *testing.T) {
	w := newFixture(t)
	for _, step := range []struct {
		method string
		want   nodepool.Mode
	}{{http.MethodPut, nodepool.Managed}, {http.MethodPut, nodepool.Managed}, {http.MethodDelete, nodepool.Shadow}, {http.MethodDelete, nodepool.Shadow}} {
		answer := w.call(step.method, llmPath+"/manage", "")
		if got := readAnswer[apiv1.ModeSet](t, answer); answer.Code != http.StatusOK || got.Mode != step.want || w.modes.set[llm] != step.want {
			t.Errorf("%s: %d %+v, set %v", step.method, answer.Code, got, w.modes.set[llm])
		}
	}
	caller := dial(t, w.handler)
	if mode, err := caller.SetManaged(t.Context(), llm, true); err != nil || mode != nodepool.Managed {
		t.Errorf("the client gets %q, %v", mode, err)
	}
}

func TestAModeThatCannotBeSetIsAProblem(t *testing.T) {
	w := newFixture(t)
	if got := w.call(http.MethodPut, "/v1/namespaces/ml/rayclusters/other/manage", ""); got.Code != http.StatusNotFound {
		t.Errorf("a cluster that is not there: %d", got.Code)
	}
	for want, err := range map[int]error{
		http.StatusServiceUnavailable: unreachable{errors.New("connection refused")}, http.StatusGatewayTimeout: context.DeadlineExceeded,
		http.StatusConflict: nodepool.ErrConflict,
	} {
		w.modes.NextErr = err
		if got := w.call(http.MethodDelete, llmPath+"/manage", ""); got.Code != want {
			t.Errorf("%v: %d, want %d", err, got.Code, want)
		}
	}
	without := newFixture(t, func(c *Config) { c.Clusters = nil })
	if got := without.call(http.MethodPut, llmPath+"/manage", ""); got.Code != http.StatusNotFound {
		t.Errorf("where modes are not served: %d", got.Code)
	}
}

func TestAClusterInShadowShowsItsOptIn(t *testing.T) {
	w := newFixture(t)
	view := w.fleet[llm]
	view.Mode = nodepool.Shadow
	view.OptIn = &apiv1.OptIn{Waiting: "demand waits for which Heliostat would launch 2 × a100", Allow: "to let Heliostat scale it: `autoscaler manage ml/llm`",
		Obstacle: &planner.Reason{Code: "Frozen", Message: "frozen"},
		Changes:  []apiv1.WouldChange{{Action: "launch", Group: "a100", Count: "2", Pods: []string{}, Reason: "launching 2 pods"}}}
	w.fleet[llm] = view
	caller := dial(t, w.handler)
	cluster, err := caller.Status(t.Context(), llm)
	if err != nil || cluster.OptIn == nil || cluster.OptIn.Waiting != view.OptIn.Waiting || cluster.OptIn.Obstacle.Code != "Frozen" || len(cluster.OptIn.Changes) != 1 {
		t.Errorf("%v; opt-in %+v", err, cluster.OptIn)
	}
	list, err := caller.Clusters(t.Context(), "ml")
	if err != nil || len(list) == 0 || !strings.Contains(list[0].WaitingInShadow, "2 × a100; to let") {
		t.Errorf("%v; list %+v", err, list)
	}
}
