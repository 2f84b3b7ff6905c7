package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
