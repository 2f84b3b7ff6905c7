package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

const problemBase = "https://heliostat.dev/problems/"

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

// fakeRequests stores requests of known clusters, and fails on demand.
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

// fakeWriter writes to known clusters, and fails on demand.
type fakeWriter struct {
	*fakeFreezer
	*fakeModes
	*fakePolicies
}

// fixture is a server with its fakes.
type fixture struct {
	fleet    fakeFleet
	requests *fakeRequests
	frozen   *fakeFreezer
	modes    *fakeModes
	policies *fakePolicies
	now      time.Time
	handler  http.Handler
}

func newFixture(t *testing.T, change ...func(*Config)) *fixture {
	t.Helper()
	w := &fixture{fleet: fakeFleet{llm: busy()}, now: noon}
	w.requests = &fakeRequests{
		known: w.fleet,
		kept:  map[nodepool.ClusterKey][]raydemand.Request{}, since: map[nodepool.ClusterKey]time.Time{},
	}
	w.frozen = &fakeFreezer{known: w.fleet, frozen: map[nodepool.ClusterKey]bool{}}
	w.modes = &fakeModes{known: w.fleet, set: map[nodepool.ClusterKey]nodepool.Mode{}}
	w.policies = &fakePolicies{known: w.fleet, set: map[nodepool.ClusterKey]*capacity.Policy{}}
	config := Config{Fleet: w.fleet, Requests: w.requests, Clusters: fakeWriter{w.frozen, w.modes, w.policies}, Now: func() time.Time { return w.now }}
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

// call sends a request as a local client does, with a JSON body.
func (w *fixture) call(method, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Host = "127.0.0.1:8090"
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, request)
	return recorder
}
