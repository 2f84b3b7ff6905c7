package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

// fakeFreezer freezes known clusters, and fails on demand.
type fakeFreezer struct {
	known   fakeFleet
	frozen  map[nodepool.ClusterKey]bool
	calls   int
	seen    func(trace.SpanContext)
	NextErr error
}

func (f *fakeFreezer) SetFreeze(ctx context.Context, key nodepool.ClusterKey, frozen bool) error {
	f.calls++
	if f.seen != nil {
		f.seen(trace.SpanContextFromContext(ctx))
	}
	if err := f.NextErr; err != nil {
		f.NextErr = nil
		return err
	}
	if _, ok := f.known[key]; !ok {
		return nodepool.ErrGone
	}
	f.frozen[key] = frozen
	return nil
}

// unreachable is the error of a dialer.
type unreachable struct{ error }

func (unreachable) Timeout() bool   { return false }
func (unreachable) Temporary() bool { return false }

func TestFreezingTwiceIsNotAnError(t *testing.T) {
	w := newFixture(t)
	for _, step := range []struct {
		method string
		want   bool
	}{{http.MethodPut, true}, {http.MethodPut, true}, {http.MethodDelete, false}, {http.MethodDelete, false}} {
		answer := w.call(step.method, llmPath+"/freeze", "")
		if answer.Code != http.StatusNoContent || w.frozen.frozen[llm] != step.want {
			t.Errorf("%s: %d, kept %v", step.method, answer.Code, w.frozen.frozen[llm])
		}
	}
}

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
		if answer.Code != http.StatusNoContent || w.modes.set[llm] != step.want {
			t.Errorf("%s: %d, set %v", step.method, answer.Code, w.modes.set[llm])
		}
	}
	caller := dial(t, w.handler)
	if err := caller.SetManaged(t.Context(), llm, true); err != nil || w.modes.set[llm] != nodepool.Managed {
		t.Errorf("by the client %v: %v", w.modes.set[llm], err)
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

// fakeDesk agrees on one worker, and fails on demand.
type fakeDesk struct {
	asked giveback.Ask
	ended int
	err   error
}

func (f *fakeDesk) Begin(_ context.Context, _ nodepool.ClusterKey, ask giveback.Ask) (giveback.Reservation, error) {
	f.asked = ask
	return giveback.Reservation{Ask: ask, Deadline: noon.Add(ask.Within()), Hold: 4, PodGPUs: map[string]int64{"gpu": 2},
		Workers: []giveback.Worker{{Pod: "w0", UID: "u0", Group: "gpu", GPUs: 2, Why: "idle"}}}, f.err
}

func (f *fakeDesk) End(context.Context, nodepool.ClusterKey) error { f.ended++; return f.err }

func TestGiveBackOverREST(t *testing.T) {
	desk := &fakeDesk{}
	w := newFixture(t, func(c *Config) { c.GiveBacks = desk })
	path := llmPath + "/give_back"
	if got := w.call(http.MethodGet, path, ""); got.Code != http.StatusNotFound {
		t.Errorf("nothing is given back: %d", got.Code)
	}
	got := w.call(http.MethodPost, path, `{"gpus": 2, "group": "gpu", "force": true}`)
	if state := readAnswer[giveback.State](t, got); got.Code != http.StatusOK || len(state.Workers) != 1 ||
		state.Workers[0].State != giveback.Gone || !state.Deadline.Equal(noon.Add(10*time.Minute)) || !desk.asked.Force {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	reservation, err := desk.Begin(t.Context(), llm, desk.asked)
	must(t, err)
	view := w.fleet[llm]
	view.Kube.GiveBack = &reservation
	for state, nodes := range map[string][]planner.Node{
		giveback.Gone:   nil,
		giveback.Leaves: {{Pod: "w0", State: planner.Leaving}},
		giveback.Works:  {{Pod: "w0", State: planner.Leaving, Activity: []string{"a task"}}},
	} {
		view.Snapshot.Nodes = nodes
		w.fleet[llm] = view
		now := readAnswer[giveback.State](t, w.call(http.MethodGet, path, ""))
		given := int64(0)
		if state == giveback.Gone {
			given = 2
		}
		if now.Workers[0].State != state || now.Given != given {
			t.Errorf("%s: %+v", state, now)
		}
	}
	if got := w.call(http.MethodDelete, path, ""); got.Code != http.StatusNoContent || desk.ended != 1 {
		t.Errorf("DELETE: %d, ended %d times", got.Code, desk.ended)
	}
}

func TestABadAskToGiveBackNamesTheField(t *testing.T) {
	desk := &fakeDesk{}
	w := newFixture(t, func(c *Config) { c.GiveBacks = desk })
	for body, want := range map[string]string{
		"a\x18\xff{":                             "gpus",
		`{"gpus": 1`:                             "gpus",
		`null`:                                   "gpus",
		``:                                       "gpus",
		`[]`:                                     "",
		`{"group": "gpu"}`:                       "gpus",
		`{"gpus": 0, "group": "gpu"}`:            "gpus",
		`{"gpus": -1, "group": "gpu"}`:           "gpus",
		`{"gpus": 1.5, "group": "gpu"}`:          "gpus",
		`{"gpus": 1}`:                            "group",
		`{"gpus": 1, "group": "a", "pool": "b"}`: "group",
		`{"gpus": 1, "group": "a", "foo": 1}`:    "foo",
		`{"gpus": 1, "group": "a", "deadlineSeconds": 5}`:            "deadlineSeconds",
		`{"gpus": 1, "group": "a", "until": "tomorrow"}`:             "until",
		`{"gpus": 1, "group": "a", "until": "2001-01-01T00:00:00Z"}`: "until",
		`{"gpus": 1, "gpus": 2, "group": "a"}`:                       "gpus",
	} {
		got := w.call(http.MethodPost, llmPath+"/give_back", body)
		if got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), want) {
			t.Errorf("%s: %d %s, want 400 that names %q", body, got.Code, got.Body, want)
		}
	}
	for want, err := range map[int]error{
		http.StatusConflict:           fmt.Errorf("%w: 2 GPUs of group gpu cannot be given back", giveback.ErrRefused),
		http.StatusServiceUnavailable: context.DeadlineExceeded,
	} {
		desk.err = err
		got := w.call(http.MethodPost, llmPath+"/give_back", `{"gpus": 2, "group": "gpu"}`)
		if got.Code != want {
			t.Errorf("%v: %d %s", err, got.Code, got.Body)
		}
	}
	if got := newFixture(t).call(http.MethodPost, llmPath+"/give_back", `{"gpus": 2, "group": "gpu"}`); got.Code != http.StatusNotFound {
		t.Errorf("where it is not served: %d", got.Code)
	}
}

func TestFreezeAndModeOfWhatIsNotThereAreNotFound(t *testing.T) {
	w, without := newFixture(t), newFixture(t, func(c *Config) { c.Clusters = nil })
	for _, what := range []string{"freeze", "manage"} {
		if got := w.call(http.MethodPut, "/v1/namespaces/ml/rayclusters/other/"+what, ""); got.Code != http.StatusNotFound {
			t.Errorf("%s of a cluster that is not there: %d", what, got.Code)
		}
		if got := without.call(http.MethodPut, llmPath+"/"+what, ""); got.Code != http.StatusNotFound {
			t.Errorf("where %s is not served: %d", what, got.Code)
		}
	}
	w.frozen.NextErr, w.modes.NextErr = unreachable{errors.New("connection refused")}, nodepool.ErrConflict
	if got := w.call(http.MethodPut, llmPath+"/freeze", ""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("a freeze without an API server: %d", got.Code)
	}
	if got := w.call(http.MethodDelete, llmPath+"/manage", ""); got.Code != http.StatusConflict {
		t.Errorf("a mode that another has set: %d", got.Code)
	}
}
