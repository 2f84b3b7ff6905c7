package api

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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

// Ages, and sentences with seconds in them, differ after every decision.
func TestTheSameDecisionASecondLaterIsNotAChange(t *testing.T) {
	fleet, sent := &movingFleet{}, sentEvents{}
	fleet.set(busy())
	if events := sent.changes(fleet, busyKey); len(events) != 3 {
		t.Errorf("the first decision has %d events", len(events))
	}
	later := busy()
	later.At, later.Read = busyNoon, addon.ReadAt(busyNoon)
	later.Plan.Groups = slices.Clone(later.Plan.Groups)
	later.Plan.Groups[0].Reasons = []planner.Reason{{Code: planner.Capped, Message: "the same, one second later"}}
	fleet.set(later)
	if events := sent.changes(fleet, busyKey); len(events) != 0 {
		t.Errorf("%d events: %s", len(events), events[0])
	}
}

func TestTheHubRefusesTooManyStreams(t *testing.T) {
	h := NewHub(HubConfig{})
	for range maxSubscribers {
		if _, err := h.add(busyKey); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.add(busyKey); !errors.Is(err, errFull) || h.Used() != 1 {
		t.Errorf("%v, %v of the streams are in use", err, h.Used())
	}
}

func TestAStreamEndsIfItsReaderStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(HubConfig{})
		h.SetFleet(fakeFleet{busyKey: busy()})
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
		if h.Used() == 0 {
			t.Error("the stream has ended before the timeout")
		}
		time.Sleep(2 * time.Second)
		if h.Used() != 0 {
			t.Error("the stream goes on after the timeout")
		}
	})
}

// event is one server-sent event.
type event struct{ kind, data string }

// openStream calls for the events of a RayCluster as alice.
func openStream(t *testing.T, server *httptest.Server) io.Reader {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+llmPath+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer alice")
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", response, err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response.Body
}

// streaming starts a server with a fleet of one cluster and a hub without pauses, and returns the first events of a
// stream and a function that reads the next one; its kind is "" when the stream has ended.
func streaming(t *testing.T, config HubConfig) (fleet *movingFleet, hub *Hub, next func() event) {
	t.Helper()
	config.Interval = -1
	fleet, hub = &movingFleet{}, NewHub(config)
	fleet.set(busy())
	server := serving(t, func(c *Config) { c.Fleet, c.Hub = fleet, hub })
	t.Cleanup(hub.Close)
	lines := bufio.NewScanner(openStream(t, server))
	return fleet, hub, func() (e event) {
		for lines.Scan() && (lines.Text() != "" || e.kind == "") {
			if kind, is := strings.CutPrefix(lines.Text(), "event: "); is {
				e.kind = kind
			}
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				e.data = data
			}
		}
		return e
	}
}

func TestAStreamSendsTheStateAndThenChanges(t *testing.T) {
	fleet, hub, next := streaming(t, HubConfig{})
	kinds := func(want ...string) {
		t.Helper()
		for _, kind := range want {
			if got := next(); got.kind != kind || !strings.Contains(got.data, `"name":"llm"`) {
				t.Fatalf("got %+v, want %s of %v", got, kind, want)
			}
		}
	}
	kinds("status", "demand", "plan")
	grown := busy()
	grown.Plan.Groups = slices.Clone(grown.Plan.Groups)
	grown.Plan.Groups[1].Desired = 3
	fleet.set(grown)
	hub.Changed(llm)
	kinds("status", "plan")
	fleet.set(View{Decision: &addon.Decision{}})
	hub.Changed(llm)
	hub.Changed(llm)
	if got := next(); got.kind != "gone" || got.data != `{"name":"llm","namespace":"ml"}` {
		t.Errorf("of a deleted cluster: %+v", got)
	}
	fleet.set(grown)
	hub.Changed(llm)
	kinds("status", "demand", "plan")
	hub.Changed(nodepool.ClusterKey{Namespace: "ml", Name: "other"})
	hub.Moved(llm)
	if got := next(); got.kind != "end" || !strings.Contains(got.data, "ml/llm has moved to another replica") {
		t.Errorf("of a cluster of another replica: %+v", got)
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
	_, _, next := streaming(t, HubConfig{MaxAge: time.Millisecond})
	got := next()
	for got.kind != "end" && got.kind != "" {
		got = next()
	}
	if !strings.Contains(got.data, "a stream lasts 1ms") {
		t.Errorf("%+v", got)
	}
}

// A token may be revoked, or a right removed, while a stream is open.
func TestAStreamEndsWithTheRightToIt(t *testing.T) {
	var revoked atomic.Bool
	hub := NewHub(HubConfig{Heartbeat: time.Millisecond})
	t.Cleanup(hub.Close)
	server := serving(t, func(c *Config) {
		c.Fleet, c.Hub = fakeFleet{llm: busy()}, hub
		c.Access = &fakeAccess{allowed: func(access.Caller, access.Right) bool { return !revoked.Load() }}
	})
	time.AfterFunc(50*time.Millisecond, func() { revoked.Store(true) })
	if response, text := ask(t, server, http.MethodGet, llmPath+"/events", ""); response.StatusCode != http.StatusOK || !strings.Contains(text, "event: end\ndata: ") || !strings.Contains(text, "may not get rayclusters") {
		t.Errorf("%s: %s", response.Status, text)
	}
}

func TestTheShutdownDoesNotWaitForStreams(t *testing.T) {
	_, hub, next := streaming(t, HubConfig{})
	next()
	hub.Close()
	got := next()
	for got.kind != "end" && got.kind != "" {
		got = next()
	}
	if !strings.Contains(got.data, serverEnds) {
		t.Errorf("%+v", got)
	}
	if _, err := hub.add(llm); !errors.Is(err, errClosed) {
		t.Errorf("a stream of a server that ends: %v", err)
	}
}
