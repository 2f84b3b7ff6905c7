package api

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
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

func (f *fakeRequests) ResourceRequests(_ context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	if _, ok := f.known[key]; !ok {
		return nil, time.Time{}, nodepool.ErrGone
	}
	return f.kept[key], f.since[key], nil
}

func (f *fakeRequests) SetResourceRequests(_ context.Context, key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) error {
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
}

// fixture is a server with its fakes.
type fixture struct {
	fleet    fakeFleet
	requests *fakeRequests
	frozen   *fakeFreezer
	modes    *fakeModes
	now      time.Time
	handler  http.Handler
}

// noOwned stores no requests with owners, as a cluster without ResourceRequests.
type noOwned struct{ OwnedRequests }

func (noOwned) All(string) ([]nodepool.OwnedRequest, error) { return nil, nodepool.ErrNoRequests }

func (noOwned) List(nodepool.ClusterKey) ([]nodepool.OwnedRequest, error) {
	return nil, nodepool.ErrNoRequests
}

func (noOwned) Put(context.Context, nodepool.OwnedRequest, Permit) (nodepool.OwnedRequest, bool, error) {
	return nodepool.OwnedRequest{}, false, nodepool.ErrNoRequests
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
	config := Config{Fleet: w.fleet, Requests: w.requests, Owned: noOwned{}, Clusters: fakeWriter{w.frozen, w.modes}, Now: func() time.Time { return w.now }}
	for _, f := range change {
		f(&config)
	}
	handler, err := NewHandler(config)
	must(t, err)
	w.handler = handler
	return w
}

// send answers a request.
func (w *fixture) send(request *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, request)
	return recorder
}

// call sends a request as a local client does, with a JSON body.
func (w *fixture) call(method, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Host = "127.0.0.1:8090"
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	return w.send(request)
}

// fakeAccess accepts every token as the name of its caller. A nil allowed allows everything.
type fakeAccess struct {
	allowed func(access.Caller, access.Right) bool

	mu      sync.Mutex
	asked   []access.Right
	NextErr error
}

func (f *fakeAccess) Authenticate(r *http.Request) (access.Caller, error) {
	if err := f.fails(); err != nil {
		return access.Caller{}, err
	}
	name, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		return access.Caller{}, fmt.Errorf("%w: there is no bearer token", access.ErrUnauthenticated)
	}
	return access.Caller{Name: name}, nil
}

func (f *fakeAccess) Authorize(_ context.Context, caller access.Caller, right access.Right) error {
	f.mu.Lock()
	f.asked = append(f.asked, right)
	f.mu.Unlock()
	if f.allowed != nil && !f.allowed(caller, right) {
		return fmt.Errorf("%w: %q may not %s", access.ErrForbidden, caller.Name, right)
	}
	return nil
}

func (f *fakeAccess) fails() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.NextErr
	f.NextErr = nil
	return err
}

// take returns the rights that were asked for since the last call, sorted.
func (f *fakeAccess) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var asked []string
	for _, right := range f.asked {
		asked = append(asked, right.String())
	}
	f.asked = nil
	slices.Sort(asked)
	return asked
}

// movingFleet is a fleet of one cluster that tests change.
type movingFleet struct {
	mu   sync.Mutex
	view View
}

func (f *movingFleet) set(view View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = view
}

func (f *movingFleet) Views() []View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []View{f.view}
}

func (f *movingFleet) View(key nodepool.ClusterKey) (View, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view, f.view.Cluster == key
}

// fakeLeadership is what one replica knows about the leader.
type fakeLeadership struct {
	mu               sync.Mutex
	leads, unsettled bool
	address          string
	known            bool
}

func (f *fakeLeadership) Leading() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.leads }
func (f *fakeLeadership) Settled() bool { f.mu.Lock(); defer f.mu.Unlock(); return !f.unsettled }
func (f *fakeLeadership) Leader() (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.address, f.known
}

func (f *fakeLeadership) becomes(address string, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.address, f.known = address, known
}

// serving starts a server of NewServer on its own port.
func serving(t *testing.T, change func(*Config)) *httptest.Server {
	t.Helper()
	config := Config{Access: &fakeAccess{}, Fleet: fakeFleet{}, Requests: newFixture(t).requests, Owned: noOwned{}}
	change(&config)
	built, err := NewServer(config)
	must(t, err)
	server := httptest.NewUnstartedServer(nil)
	server.Config = built
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func hostOf(s *httptest.Server) string { return s.Listener.Addr().String() }

// behind starts a follower with an empty fleet.
func behind(t *testing.T, leader string, change ...func(*Config)) (*httptest.Server, *fakeLeadership) {
	t.Helper()
	leadership := &fakeLeadership{address: leader, known: leader != ""}
	server := serving(t, func(c *Config) {
		c.Leadership = leadership
		for _, f := range change {
			f(c)
		}
	})
	return server, leadership
}

// ask makes a call with alice's token and returns the answer and its body.
func ask(t *testing.T, server *httptest.Server, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	must(t, err)
	request.Header.Set("Authorization", "Bearer alice")
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			request.Header.Del(header[i])
		}
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response, string(text)
}

// wantUnavailable checks a 503 with Retry-After.
func wantUnavailable(t *testing.T, what string, response *http.Response, body, says string) {
	t.Helper()
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "1" || !strings.Contains(body, says) {
		t.Errorf("%s: %s, Retry-After %q, %s; want 503 that says %q", what, response.Status, response.Header.Get("Retry-After"), body, says)
	}
}

// memNetwork is a network in memory with one listener. In a synctest bubble, only waiting takes time on it: tests can
// check timeouts of seconds and hours exactly, however slow the machine is.
type memNetwork struct {
	calls  chan net.Conn
	closed chan struct{}
	close  func()
}

// newMemNetwork returns a network without a server.
func newMemNetwork() *memNetwork {
	closed := make(chan struct{})
	return &memNetwork{calls: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

// Accept waits for the next connection.
func (n *memNetwork) Accept() (net.Conn, error) {
	select {
	case c := <-n.calls:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the listener.
func (n *memNetwork) Close() error { n.close(); return nil }

// Addr returns the address of both ends.
func (n *memNetwork) Addr() net.Addr { return memAddress{} }

// memAddress is the address of both ends.
type memAddress struct{}

func (memAddress) Network() string { return "tcp" }

func (memAddress) String() string { return "127.0.0.1:8090" }

// memEnd is one end of a connection.
type memEnd struct{ net.Conn }

func (memEnd) LocalAddr() net.Addr { return memAddress{} }

func (memEnd) RemoteAddr() net.Addr { return memAddress{} }

// Dial connects to the listener.
func (n *memNetwork) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case n.calls <- memEnd{there}:
		return memEnd{here}, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Transport returns a transport over the network, with TLS if config is not nil.
func (n *memNetwork) Transport(t *testing.T, config *tls.Config) *http.Transport {
	t.Helper()
	transport := &http.Transport{DialContext: n.Dial, TLSClientConfig: config, ForceAttemptHTTP2: config != nil}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// Serve runs a server on the network until the test ends.
func (n *memNetwork) Serve(t *testing.T, server *http.Server) {
	t.Helper()
	var served sync.WaitGroup
	served.Go(func() {
		if server.TLSConfig != nil {
			_ = server.ServeTLS(n, "", "") // returns after Close
			return
		}
		_ = server.Serve(n)
	})
	t.Cleanup(func() { server.Close(); served.Wait() })
}

// servingInMemory returns a network on which a handler serves.
func servingInMemory(t *testing.T, handler http.HandlerFunc) *memNetwork {
	t.Helper()
	n := newMemNetwork()
	n.Serve(t, &http.Server{Handler: handler})
	return n
}

// busyNoon is the time of the view.
var busyNoon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// busyKey is the RayCluster of the view.
var busyKey = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// busy returns a view with a value in every field that the API shows.
func busy() View {
	gpu := raydemand.Bundle{raydemand.CPU: raydemand.Whole(8), raydemand.GPU: raydemand.One}
	half := raydemand.Bundle{raydemand.GPU: raydemand.One / 2}
	capped := planner.Reason{Code: planner.Capped, Message: "group a100 is at its maximum of 4"}
	zone, _ := raydemand.ParseSelector(map[string]string{"zone": "in(us-1,us-2)"})
	gang := raydemand.Gang{
		ID: "3f2a", Strategy: raydemand.StrictSpread,
		Bundles: []raydemand.Bundle{gpu, gpu}, BundleSelectors: []raydemand.Selector{zone, {}},
	}
	return View{
		Decision: &addon.Decision{
			Cluster: busyKey,
			Mode:    nodepool.Managed,
			Why:     planner.Reason{Message: "annotation heliostat.dev/mode"},
			Paused:  "Ray's account is 12 s old",
			At:      busyNoon.Add(-time.Second),
			Took:    3 * time.Millisecond,
			Read:    addon.LatestOf(busyNoon.Add(-1500 * time.Millisecond)),
			Err:     "reading Ray's state: deadline exceeded",
			Snapshot: planner.Snapshot{
				Name:    "ml/llm",
				TakenAt: busyNoon.Add(-time.Second),
				Groups: []planner.Group{
					{Name: "a100", Resources: gpu, Max: 4, NumOfHosts: 1},
					{Name: "mig", Closed: "suspended"},
				},
				Nodes: []planner.Node{
					{Pod: "a", Group: "a100", State: planner.Running},
					{Pod: "b", Group: "a100", State: planner.Idle},
					{Pod: "c", Group: "a100", State: planner.Pending, Arrival: &arrival.State{
						Stage: arrival.NodeReady, Message: "nvidia.com/gpu is not registered", Since: busyNoon,
					}},
					{Pod: "d", Group: "a100", State: planner.Leaving},
					{
						Pod:   "e",
						Group: "a100",
						State: planner.AllocationTimeout,
					},
					{Pod: "f", Group: "mig", State: planner.Pending},
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
				InfeasibleRequests: []planner.UnmetRequest{
					{Request: raydemand.Request{Bundle: gpu, Count: 2}, Reason: capped},
				},
				InfeasibleGangRequests: []planner.UnmetGang{{Gang: gang, Reason: capped}},
				InfeasibleRequestResources: []planner.UnmetRequest{
					{Request: raydemand.Request{Bundle: gpu, Count: 3}, Reason: capped},
				},
			},
			Findings: []raydemand.Finding{
				{
					Code:     "demand-truncated",
					Severity: raydemand.Warning,
					Object:   "RayCluster ml/llm",
					Fix:      "ask for fewer shapes",
				},
				{Code: "old-ray", Severity: raydemand.Info},
			},
			Recent: []addon.Action{
				{
					At:   busyNoon.Add(-time.Hour),
					Kind: "patch", Result: "ok",
					Group:   "a100",
					From:    3,
					To:      2,
					Pods:    []string{"z"},
					Message: "without z",
				},
				{
					At:   busyNoon.Add(-time.Minute),
					Kind: "patch", Result: "ok",
					Group:   "a100",
					From:    2,
					To:      4,
					Message: "launching 2 pods for 2 × {GPU 1}",
				},
			},
			Kube: nodepool.Cluster{Freeze: true, RequestResources: []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 4}}},
		},
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
