package api

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAFailedReviewChangesNothing(t *testing.T) {
	f, err := newNamespaceFilter(&oneCluster{view: busy()}, func(namespaces []string) (bool, map[string]bool, error) {
		return false, map[string]bool{namespaces[0]: true}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f.ask = func([]string) (bool, map[string]bool, error) { return false, nil, errors.New("connection refused") }
	if gained, err := f.review(); err == nil || len(gained) > 0 || !f.includes(busyKey) {
		t.Errorf("%v gained, %v", gained, err)
	}
}

func TestAnotherShapeOfADemandIsAChange(t *testing.T) {
	of := func(change func(*planner.DemandSummary)) uint64 {
		view := busy()
		view.Plan.Summary = slices.Clone(view.Plan.Summary)
		view.Plan.Summary = append(view.Plan.Summary, planner.DemandSummary{Kind: "request", Resources: raydemand.Bundle{raydemand.CPU: raydemand.One}, Asked: 1, Served: 1})
		change(&view.Plan.Summary[len(view.Plan.Summary)-1])
		return stateOf(view, busyNoon).planSum
	}
	same := of(func(*planner.DemandSummary) {})
	if same != of(func(*planner.DemandSummary) {}) {
		t.Fatal("the same plan has two sums")
	}
	zone, err := raydemand.ParseSelector(map[string]string{"zone": "us-1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*planner.DemandSummary){
		"another amount":    func(d *planner.DemandSummary) { d.Resources = raydemand.Bundle{raydemand.CPU: raydemand.One + 1} },
		"another label":     func(d *planner.DemandSummary) { d.Selectors = []raydemand.Selector{zone} },
		"another slice":     func(d *planner.DemandSummary) { d.Slice = &raydemand.SliceRequirement{Memory: 1 << 30} },
		"another kind":      func(d *planner.DemandSummary) { d.Kind = "requestResources" },
		"over REST":         func(d *planner.DemandSummary) { d.OverREST = true },
		"a placement group": func(d *planner.DemandSummary) { d.Gang = &raydemand.Gang{ID: "3f2a"} },
	} {
		if of(change) == same {
			t.Errorf("%s is not a change", name)
		}
	}
}

func TestAnotherStateOfARequestIsAChange(t *testing.T) {
	of := func(change func(*View)) uint64 {
		view := busy()
		view.Kube.Owned = []nodepool.OwnedRequest{{Owned: raydemand.Owned{ID: "train-7", Owner: "ann"}, LeaseSeconds: 60, RenewedAt: busyNoon, Status: nodepool.OwnedStatus{State: raydemand.RequestWaiting}}}
		view.Plan.Requests = []planner.RequestPlan{{ID: "train-7", Owner: "ann", State: raydemand.RequestWaiting}}
		change(&view)
		return stateOf(view, busyNoon).planSum
	}
	same := of(func(*View) {})
	for name, change := range map[string]func(*View){
		"the plan":          func(v *View) { v.Plan.Requests[0].State = raydemand.RequestSatisfied },
		"the stored status": func(v *View) { v.Kube.Owned[0].Status.State = raydemand.RequestSatisfied },
		"the reason":        func(v *View) { v.Kube.Owned[0].Status.Code = planner.Capped },
		"the pods":          func(v *View) { v.Kube.Owned[0].Status.Pods = []string{"a"} },
		"another priority":  func(v *View) { v.Kube.Owned[0].Priority = 5 },
		"no request":        func(v *View) { v.Kube.Owned, v.Plan.Requests = nil, nil },
	} {
		if of(change) == same {
			t.Errorf("%s is not a change", name)
		}
	}
	if of(func(v *View) { v.Kube.Owned[0].RenewedAt = busyNoon.Add(time.Minute) }) != same {
		t.Error("a renewed lease is a change")
	}
}

// fleetStream follows a growing fleet as a caller with these rights.
func fleetStream(t *testing.T, heartbeat time.Duration, allowed func(access.Right) bool, views ...View) (*growingFleet, *Hub, <-chan apiv1.Event) {
	t.Helper()
	fleet := &growingFleet{views: fakeFleet{}}
	for _, view := range views {
		fleet.add(view)
	}
	hub := NewHub(HubConfig{Interval: -1, Heartbeat: heartbeat})
	rights := &fakeAccess{allowed: func(_ access.Caller, right access.Right) bool { return allowed(right) }}
	w := newFixture(t)
	server, err := NewServer(Config{Fleet: fleet, Requests: w.requests, Owned: noOwned{}, Access: rights, Hub: hub})
	if err != nil {
		t.Fatal(err)
	}
	running := httptest.NewUnstartedServer(nil)
	running.Config = server
	running.Start()
	t.Cleanup(running.Close)
	t.Cleanup(hub.Close)
	caller, err := apiv1.NewClient(running.URL, &http.Client{Transport: bearer{}})
	if err != nil {
		t.Fatal(err)
	}
	received, _ := heard(t, caller, nodepool.ClusterKey{})
	return fleet, hub, received
}

// bearer adds the token ada.
type bearer struct{}

func (bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer ada")
	return http.DefaultTransport.RoundTrip(r)
}

func viewOf(namespace, name string) View {
	view := busy()
	view.Cluster = nodepool.ClusterKey{Namespace: namespace, Name: name}
	return view
}

func subjectOf(t *testing.T, event apiv1.Event) string {
	t.Helper()
	var of struct{ Namespace, Name string }
	if err := json.Unmarshal(event.Data, &of); err != nil {
		t.Fatal(err)
	}
	return event.Kind + " " + of.Namespace + "/" + of.Name
}

func TestAFleetStreamShowsNewNamespaces(t *testing.T) {
	for name, allowed := range map[string]func(access.Right) bool{
		"who may list everywhere":         func(access.Right) bool { return true },
		"who may list the new namespace":  func(right access.Right) bool { return slices.Contains([]string{"ml", "new"}, right.Namespace) },
		"who may list it by its own name": func(right access.Right) bool { return right.Namespace != "" && right.Namespace != "hidden" },
	} {
		t.Run(name, func(t *testing.T) {
			fleet, hub, received := fleetStream(t, 10*time.Millisecond, allowed, viewOf("ml", "llm"))
			if got := subjectOf(t, next(t, received)); got != "status ml/llm" {
				t.Fatalf("it begins with %s", got)
			}
			fleet.add(viewOf("new", "young"))
			hub.Changed(nodepool.ClusterKey{Namespace: "new", Name: "young"})
			if got := subjectOf(t, next(t, received)); got != "status new/young" {
				t.Errorf("of the new namespace %s is heard", got)
			}
		})
	}
}

func TestAFleetStreamHidesForbiddenNamespaces(t *testing.T) {
	fleet, hub, received := fleetStream(t, 10*time.Millisecond, func(right access.Right) bool { return right.Namespace == "ml" }, viewOf("ml", "llm"))
	next(t, received)
	fleet.add(viewOf("hidden", "secret"))
	hub.Changed(nodepool.ClusterKey{Namespace: "hidden", Name: "secret"})
	fleet.add(viewOf("ml", "second"))
	hub.Changed(nodepool.ClusterKey{Namespace: "ml", Name: "second"})
	if got := subjectOf(t, next(t, received)); got != "status ml/second" {
		t.Errorf("%s is heard", got)
	}
}

// A short heartbeat saves the test from waiting. A revoked right takes effect with the next heartbeat.
func TestAFleetStreamHidesNamespacesAfterTheRightIsRevoked(t *testing.T) {
	var revoked atomic.Bool
	asked := make(chan struct{}, 1)
	allowed := func(right access.Right) bool {
		if revoked.Load() && right.Namespace == "ml" {
			select {
			case asked <- struct{}{}:
			default:
			}
		}
		return right.Namespace == "other" || right.Namespace == "ml" && !revoked.Load()
	}
	_, hub, received := fleetStream(t, time.Millisecond, allowed, viewOf("ml", "llm"), viewOf("other", "llm"))
	next(t, received)
	next(t, received)
	revoked.Store(true)
	<-asked // the review of one heartbeat
	<-asked // the review of the next one, so the first is complete
	hub.Changed(llm)
	hub.Changed(nodepool.ClusterKey{Namespace: "other", Name: "llm"})
	for range 3 {
		if got := subjectOf(t, next(t, received)); got[len(got)-len("other/llm"):] != "other/llm" {
			t.Errorf("%s is heard after the right was taken away", got)
		}
	}
}

// oneCluster is a fleet of one cluster, which tests change.
type oneCluster struct {
	mu   sync.Mutex // guards view
	view View
}

func (f *oneCluster) set(view View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = view
}

func (f *oneCluster) Views() []View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []View{f.view}
}

func (f *oneCluster) View(key nodepool.ClusterKey) (View, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view, f.view.Cluster == key
}

func TestAHubWithoutSubscribersStoresNothing(t *testing.T) {
	h := NewHub(HubConfig{Interval: -1})
	h.SetFleet(&oneCluster{view: busy()})
	h.Changed(busyKey)
	if len(h.changed) != 0 || h.done != nil {
		t.Error("the hub stores changes without a subscriber")
	}
	s := newSubscriber(func(nodepool.ClusterKey) bool { return true })
	if err := h.add(s); err != nil {
		t.Fatal(err)
	}
	h.Changed(busyKey)
	<-s.wake
	h.remove(s)
	<-h.done
	if len(h.sent) != 0 {
		t.Error("the hub stores what it sent after the last subscriber left")
	}
	if n := testing.AllocsPerRun(100, func() { h.Changed(busyKey) }); n != 0 {
		t.Errorf("a decision without subscribers makes %v allocations", n)
	}
}

func TestTheHubRefusesTooManySubscribers(t *testing.T) {
	h := NewHub(HubConfig{Interval: -1})
	for range maxSubscribers {
		h.subscribers[newSubscriber(nil)] = true
	}
	if err := h.add(newSubscriber(nil)); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

// The time from one decision until 1000 subscribers have its events.
func BenchmarkHubWith1000Subscribers(b *testing.B) {
	fleet := &oneCluster{}
	h := NewHub(HubConfig{Interval: -1})
	h.SetFleet(fleet)
	defer h.Close()
	subscribers := make([]*subscriber, 1000)
	for i := range subscribers {
		subscribers[i] = newSubscriber(func(key nodepool.ClusterKey) bool { return key == busyKey })
		if err := h.add(subscribers[i]); err != nil {
			b.Fatal(err)
		}
	}
	view, desired := busy(), 0
	b.ReportAllocs()
	for b.Loop() {
		desired++
		view.Plan.Groups = slices.Clone(view.Plan.Groups)
		view.Plan.Groups[0].Desired = desired
		fleet.set(view)
		h.Changed(busyKey)
		for _, s := range subscribers {
			<-s.wake
			s.take()
		}
	}
}

func BenchmarkHubWithoutSubscribers(b *testing.B) {
	h := NewHub(HubConfig{Interval: -1})
	b.ReportAllocs()
	for b.Loop() {
		h.Changed(busyKey)
	}
}

// Ages, and sentences with seconds in them, differ after every decision.
func TestTheSameDecisionASecondLaterIsNotAChange(t *testing.T) {
	h := NewHub(HubConfig{})
	h.SetFleet(&oneCluster{view: busy()})
	if events := h.changes(busy()); len(events) != 3 {
		t.Errorf("the first decision has %d events", len(events))
	}
	later := busy()
	later.At, later.Read = busyNoon, addon.ReadAt(busyNoon)
	later.Plan.Groups = slices.Clone(later.Plan.Groups)
	later.Plan.Groups[0].Reasons = []planner.Reason{{Code: planner.Capped, Message: "the same, one second later"}}
	if events := h.changes(later); len(events) != 0 {
		t.Errorf("%d events: %s", len(events), events[0].text)
	}
}

func TestAStreamEndsIfItsReaderStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(HubConfig{})
		h.SetFleet(&oneCluster{view: busy()})
		network := servingInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			_ = h.FollowCluster(w, r, busyKey, func() error { return nil })
		})
		connection, err := network.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(streamTimeout - time.Second)
		if n := h.subscribed.Load(); n != 1 {
			t.Errorf("%d subscribers before the timeout", n)
		}
		time.Sleep(2 * time.Second)
		if h.subscribed.Load() != 0 {
			t.Error("the stream goes on after the timeout")
		}
	})
}

// streaming starts a server with a hub that dispatches without pauses.
func streaming(t *testing.T, config HubConfig) (*fixture, *Hub, *apiv1.Client) {
	t.Helper()
	config.Interval = -1
	hub := NewHub(config)
	w := newFixture(t)
	server, err := NewServer(Config{Fleet: w.fleet, Requests: w.requests, Owned: noOwned{}, Now: func() time.Time { return w.now }, Hub: hub})
	if err != nil {
		t.Fatal(err)
	}
	running := httptest.NewUnstartedServer(nil)
	running.Config = server
	running.Start()
	t.Cleanup(running.Close)
	t.Cleanup(hub.Close)
	caller, err := apiv1.NewClient(running.URL, running.Client())
	if err != nil {
		t.Fatal(err)
	}
	return w, hub, caller
}

// heard follows a cluster and returns its events.
func heard(t *testing.T, caller *apiv1.Client, key nodepool.ClusterKey) (received <-chan apiv1.Event, ended <-chan error) {
	t.Helper()
	c, e := make(chan apiv1.Event), make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	go func() {
		defer close(c)
		e <- caller.Follow(ctx, key, func(event apiv1.Event) error {
			select {
			case c <- event:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return c, e
}

func next(t *testing.T, received <-chan apiv1.Event) apiv1.Event {
	t.Helper()
	event, ok := <-received
	if !ok {
		t.Fatal("the stream ended")
	}
	return event
}

// kindsOf returns the kinds of the next n events.
func kindsOf(t *testing.T, received <-chan apiv1.Event, n int) (kinds []string) {
	for range n {
		kinds = append(kinds, next(t, received).Kind)
	}
	return kinds
}

func TestAStreamSendsTheStateAndThenChanges(t *testing.T) {
	fleet := &movingFleet{}
	fleet.set(busy())
	_, hub, caller := streaming(t, HubConfig{})
	hub.SetFleet(fleet)
	got, _ := heard(t, caller, llm)
	if kinds := kindsOf(t, got, 3); !slices.Equal(kinds, []string{"status", "demand", "plan"}) {
		t.Fatalf("a stream begins with %v", kinds)
	}
	hub.Changed(llm) // the first dispatch sends everything, because nothing was sent before
	if kinds := kindsOf(t, got, 3); !slices.Equal(kinds, []string{"status", "demand", "plan"}) {
		t.Fatalf("the first dispatch sends %v", kinds)
	}
	grown := busy()
	grown.Plan.Groups = slices.Clone(grown.Plan.Groups)
	grown.Plan.Groups[1].Desired = 3
	fleet.set(grown)
	hub.Changed(llm)
	event := next(t, got)
	var status apiv1.ClusterSummary
	if err := json.Unmarshal(event.Data, &status); err != nil || event.Kind != "status" || status.Workers.Desired != 7 || status.Name != "llm" {
		t.Errorf("%s %s, %v", event.Kind, event.Data, err)
	}
	if event := next(t, got); event.Kind != "plan" || event.ID == "" || !strings.HasPrefix(string(event.Data), `{"namespace":"ml","name":"llm"`) {
		t.Errorf("%+v", event)
	}
}

func TestAFleetStreamSendsEachStatusAndThenChanges(t *testing.T) {
	w, hub, caller := streaming(t, HubConfig{})
	w.fleet[otherKey] = View{Decision: addon.Decision{Cluster: otherKey, Mode: nodepool.Off}}
	got, _ := heard(t, caller, nodepool.ClusterKey{})
	if kinds := kindsOf(t, got, 2); !slices.Equal(kinds, []string{"status", "status"}) {
		t.Fatalf("it begins with %v", kinds)
	}
	hub.Gone(nodepool.ClusterKey{Namespace: "ml", Name: "former"})
	if event := next(t, got); event.Kind != "gone" || string(event.Data) != `{"namespace":"ml","name":"former"}` {
		t.Errorf("%s %s", event.Kind, event.Data)
	}
	hub.Gone(otherKey) // it exists
	hub.Changed(otherKey)
	if kinds := kindsOf(t, got, 3); !slices.Equal(kinds, []string{"status", "demand", "plan"}) {
		t.Errorf("a cluster that is there again: %v", kinds)
	}
}

// The timeouts of a connection would end an ordinary answer in this time.
func TestAStreamHasNoWriteTimeout(t *testing.T) {
	const beats = 2 * int(writeTimeout/(15*time.Second))
	bothWays(t, func(t *testing.T, url string, ours, theirs *tls.Config) {
		hub := NewHub(HubConfig{})
		w := wiredServer(t, func(c *Config) { c.Fleet, c.Hub, c.TLS = fakeFleet{llm: busy()}, hub, ours })
		response := aliceGets(t, w.Transport(t, theirs), url+llmPath+"/events")
		if got := response.Header.Get("Content-Type"); got != "text/event-stream" || (response.ProtoMajor == 2) != (ours != nil) {
			t.Fatalf("Content-Type is %q over %s", got, response.Proto)
		}
		lines := bufio.NewReader(response.Body)
		for beat := 0; beat < beats; {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream ended after %d beats: %v", beat, err)
			}
			if line == ": keep-alive\n" {
				beat++
			}
		}
		hub.Close()
		rest, err := io.ReadAll(lines)
		if err != nil || !strings.HasSuffix(string(rest), "event: end\ndata: {\"reason\":\"the server is shutting down\"}\n\n") {
			t.Errorf("%v: it ends with %q", err, rest)
		}
	})
}

func TestAStreamHasAMaximumAge(t *testing.T) {
	_, _, caller := streaming(t, HubConfig{MaxAge: time.Millisecond})
	err := caller.Follow(t.Context(), llm, func(apiv1.Event) error { return nil })
	if !errors.Is(err, apiv1.ErrStreamEnded) || !strings.Contains(err.Error(), "a stream lasts 1ms") {
		t.Errorf("%v", err)
	}
}

func TestTheShutdownDoesNotWaitForStreams(t *testing.T) {
	_, hub, caller := streaming(t, HubConfig{})
	got, ended := heard(t, caller, llm)
	next(t, got)
	hub.Close()
	for range got {
	}
	if err := <-ended; !errors.Is(err, apiv1.ErrStreamEnded) {
		t.Errorf("%v", err)
	}
	err := caller.Follow(t.Context(), llm, func(apiv1.Event) error { return nil })
	var problem *apiv1.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable {
		t.Errorf("a stream of a server that ends: %v", err)
	}
}

func TestANewEventReplacesThePendingOneOfItsTopic(t *testing.T) {
	s := newSubscriber(nil)
	other := nodepool.ClusterKey{Name: "other"}
	s.put(event{topic: topic{busyKey, "plan"}, text: []byte("1")}, event{topic: topic{busyKey, "status"}, text: []byte("2")}, event{topic: topic{other, "plan"}, text: []byte("3")}, event{topic: topic{busyKey, "plan"}, text: []byte("44")})
	events, ended := s.take()
	var texts []string
	for _, f := range events {
		texts = append(texts, string(f.text))
	}
	if want := []string{"2", "3", "44"}; !slices.Equal(texts, want) || ended != "" || s.bytes != 0 {
		t.Errorf("%v %q, %d bytes; want %v", texts, ended, s.bytes, want)
	}
}

func TestAStreamWithTooManyPendingBytesEnds(t *testing.T) {
	s := newSubscriber(nil)
	large := make([]byte, maxPending/4)
	for i := range 6 {
		s.put(event{topic: topic{nodepool.ClusterKey{Name: fmt.Sprint(i)}, "plan"}, text: large})
	}
	if events, ended := s.take(); len(events) != 0 || ended != "too slow: more than 4 MiB of events are pending" || s.bytes != 0 {
		t.Errorf("%d events and %d bytes are pending: %q", len(events), s.bytes, ended)
	}
	if text := string(endEvent("too slow")); text != "event: end\ndata: {\"reason\":\"too slow\"}\n\n" {
		t.Errorf("the last event is %q", text)
	}
}

// For a reader that stopped reading, each change costs the same memory and time.
func TestReplacedEventsTakeNoMemory(t *testing.T) {
	s := newSubscriber(nil)
	const topics = 100
	for i := range 50 * topics {
		s.put(event{topic: topic{busyKey, fmt.Sprint(i % topics)}, text: []byte("x")})
		if len(s.pending) > 2*topics {
			t.Fatalf("%d events are pending after %d events on %d topics", len(s.pending), i+1, topics)
		}
	}
	if events, _ := s.take(); len(events) != topics || events[0].kind != "0" {
		t.Errorf("%d events are pending, the first about %q", len(events), events[0].kind)
	}
}

func BenchmarkPutForAReaderThatStoppedReading(b *testing.B) {
	s := newSubscriber(nil)
	events := make([]event, 3000)
	for i := range events {
		events[i] = event{topic: topic{nodepool.ClusterKey{Name: fmt.Sprint(i)}, "plan"}, text: []byte("x")}
	}
	for i := 0; b.Loop(); i++ {
		s.put(events[i%len(events)])
	}
}
