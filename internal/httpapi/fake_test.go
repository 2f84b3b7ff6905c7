package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

const llmPath = "/v1/namespaces/ml/rayclusters/llm"

// fakeFleet holds views by key.
type fakeFleet map[nodepool.ClusterKey]View

func (f fakeFleet) Views() []View {
	views := []View{}
	for _, view := range f {
		views = append(views, view)
	}
	return views
}

func (f fakeFleet) View(key nodepool.ClusterKey) (View, bool) {
	view, ok := f[key]
	return view, ok
}

// fakeRequests keeps requests of known clusters and fails on request.
type fakeRequests struct {
	known   fakeFleet
	kept    map[nodepool.ClusterKey][]raydemand.Request
	since   map[nodepool.ClusterKey]time.Time
	sets    int
	NextErr error
}

func (f *fakeRequests) Get(_ context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	if _, ok := f.known[key]; !ok {
		return nil, time.Time{}, nodepool.ErrGone
	}
	return f.kept[key], f.since[key], nil
}

func (f *fakeRequests) Set(_ context.Context, key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) error {
	if err := f.NextErr; err != nil {
		f.NextErr = nil
		return err
	}
	f.sets++
	f.kept[key], f.since[key] = requests, since
	return nil
}

// world is a server with its fakes.
type world struct {
	fleet    fakeFleet
	requests *fakeRequests
	frozen   *fakeFreezer
	modes    *fakeModes
	now      time.Time
	handler  http.Handler
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := &world{fleet: fakeFleet{llm: busyView()}, now: noon}
	w.requests = &fakeRequests{
		known: w.fleet,
		kept:  map[nodepool.ClusterKey][]raydemand.Request{}, since: map[nodepool.ClusterKey]time.Time{},
	}
	w.frozen = &fakeFreezer{known: w.fleet, frozen: map[nodepool.ClusterKey]bool{}}
	w.modes = &fakeModes{known: w.fleet, set: map[nodepool.ClusterKey]nodepool.Mode{}}
	config := Config{Fleet: w.fleet, Requests: w.requests, Freezer: w.frozen, Modes: w.modes, Now: func() time.Time { return w.now }}
	for _, f := range change {
		f(&config)
	}
	handler, err := NewHandler(config)
	if err != nil {
		t.Fatal(err)
	}
	w.handler = handler
	return w
}

// call sends a request as a local client does; a body is declared as JSON.
func (w *world) call(method, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Host = "127.0.0.1:8090"
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, request)
	return recorder
}

// busyView has something in every field that the API shows.
func busyView() View {
	gpu := raydemand.Bundle{raydemand.CPU: raydemand.Whole(8), raydemand.GPU: raydemand.One}
	half := raydemand.Bundle{raydemand.GPU: raydemand.One / 2}
	capped := planner.Reason{Code: planner.Capped, Message: "group a100 is at its maximum of 4"}
	zone, _ := raydemand.ParseSelector(map[string]string{"zone": "in(us-1,us-2)"})
	gang := raydemand.Gang{
		ID: "3f2a", Strategy: raydemand.StrictSpread,
		Bundles: []raydemand.Bundle{gpu, gpu}, BundleSelectors: []raydemand.Selector{zone, {}},
	}
	return View{
		Key: llm, Mode: nodepool.Managed, ModeReason: "annotation heliostat.dev/mode", Frozen: true, Paused: "Ray's account is 12 s old",
		CycleAt: noon.Add(-time.Second), CycleTook: 3 * time.Millisecond, StateAt: noon.Add(-1500 * time.Millisecond),
		Error: "reading Ray's state: deadline exceeded",
		Snapshot: planner.Snapshot{
			Name: "ml/llm", TakenAt: noon.Add(-time.Second),
			Groups: []planner.Group{{Name: "a100", Resources: gpu, Max: 4, NumOfHosts: 1}, {Name: "mig", Closed: "suspended"}},
			Nodes: []planner.Node{
				{Pod: "a", Group: "a100", State: planner.Running}, {Pod: "b", Group: "a100", State: planner.Idle},
				{Pod: "c", Group: "a100", State: planner.Pending}, {Pod: "d", Group: "a100", State: planner.Leaving},
				{Pod: "e", Group: "a100", State: planner.AllocationTimeout}, {Pod: "f", Group: "mig", State: planner.Pending},
			},
			Demand: raydemand.Demand{
				Requests: []raydemand.Request{
					{Bundle: half, Count: 3, Selectors: []raydemand.Selector{zone}}, {Bundle: gpu, Count: 2},
				},
				Gangs:      []raydemand.Gang{gang},
				Constraint: []raydemand.Request{{Bundle: gpu, Count: 7}},
			},
			KeptResources: []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 4}},
		},
		Plan: planner.Plan{
			Groups: []planner.GroupPlan{
				{Name: "a100", Current: 4, Desired: 4, Max: 4, Resources: gpu, Reasons: []planner.Reason{capped}},
				{Name: "mig", Current: 1, Desired: 2, Min: 1, Max: 3},
			},
			InfeasibleRequests:         []planner.UnmetRequest{{Request: raydemand.Request{Bundle: gpu, Count: 2}, Reason: capped}},
			InfeasibleGangRequests:     []planner.UnmetGang{{Gang: gang, Reason: capped}},
			InfeasibleRequestResources: []planner.UnmetRequest{{Request: raydemand.Request{Bundle: gpu, Count: 3}, Reason: capped}},
		},
		Requested: []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 4}},
		Findings: []raydemand.Finding{
			{Code: "demand-truncated", Severity: raydemand.Warning, Object: "RayCluster ml/llm", Fix: "ask for fewer shapes"},
			{Code: "old-ray", Severity: raydemand.Info},
		},
		Changes: []apiv1.Decision{
			{At: noon.Add(-time.Minute), Action: "scale-up", Group: "a100", From: 2, To: 4, Reason: planner.Reason{Code: "patch-ok", Message: "launching 2 pods for 2 × {GPU 1}"}},
			{At: noon.Add(-time.Hour), Action: "scale-down", Group: "a100", From: 3, To: 2, Pods: []string{"z"}, Reason: planner.Reason{Code: "patch-ok", Message: "without z"}},
		},
	}
}
