package httpapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/httpapi/client"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// streaming is a server with a hub whose rounds follow each other at once.
func streaming(t *testing.T, change func(*http.Server, *Hub)) (*world, *Hub, *client.Client) {
	t.Helper()
	hub := NewHub()
	hub.pause = 0
	w := newWorld(t)
	server, err := NewServer(Config{Fleet: w.fleet, Requests: w.requests, Now: func() time.Time { return w.now }, Hub: hub})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(server, hub)
	}
	running := httptest.NewUnstartedServer(nil)
	running.Config = server
	running.Start()
	t.Cleanup(running.Close)
	t.Cleanup(hub.Close)
	caller, err := client.New(running.URL, running.Client())
	if err != nil {
		t.Fatal(err)
	}
	return w, hub, caller
}

// heard follows a cluster and passes its events on.
func heard(t *testing.T, caller *client.Client, key nodepool.ClusterKey) (events <-chan client.Event, ended <-chan error) {
	t.Helper()
	c, e := make(chan client.Event), make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	go func() {
		defer close(c)
		e <- caller.Follow(ctx, key, func(event client.Event) error {
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

func next(t *testing.T, events <-chan client.Event) client.Event {
	t.Helper()
	event, ok := <-events
	if !ok {
		t.Fatal("the stream ended")
	}
	return event
}

// kindsOf are the kinds of the next n events.
func kindsOf(t *testing.T, events <-chan client.Event, n int) (kinds []string) {
	for range n {
		kinds = append(kinds, next(t, events).Kind)
	}
	return kinds
}

func TestAStreamBeginsWithWhatIsThereAndTellsOnlyWhatIsNew(t *testing.T) {
	fleet := &movingFleet{}
	fleet.set(busyView())
	_, hub, caller := streaming(t, nil)
	hub.fleet = fleet
	events, _ := heard(t, caller, llm)
	if got := kindsOf(t, events, 3); !slices.Equal(got, []string{"status", "demand", "plan"}) {
		t.Fatalf("a stream begins with %v", got)
	}
	hub.Changed(llm) // the first round tells everything: nobody knows what was told before
	if got := kindsOf(t, events, 3); !slices.Equal(got, []string{"status", "demand", "plan"}) {
		t.Fatalf("the first round tells %v", got)
	}
	t.Run("a decision that is the same a second later is no news", func(t *testing.T) { hubKeepsQuiet(t, hub) })
	grown := busyView()
	grown.Plan.Groups = slices.Clone(grown.Plan.Groups)
	grown.Plan.Groups[1].Desired = 3
	fleet.set(grown)
	hub.Changed(llm)
	event := next(t, events)
	var status apiv1.ClusterSummary
	if err := json.Unmarshal(event.Data, &status); err != nil || event.Kind != "status" || status.Workers.Desired != 7 || status.Name != "llm" {
		t.Errorf("%s %s, %v", event.Kind, event.Data, err)
	}
	if event := next(t, events); event.Kind != "plan" || event.ID == "" || !strings.HasPrefix(string(event.Data), `{"namespace":"ml","name":"llm"`) {
		t.Errorf("%+v", event)
	}
}

// Ages, and sentences with seconds in them, change with every decision.
func hubKeepsQuiet(t *testing.T, hub *Hub) {
	later := busyView()
	later.CycleAt, later.StateAt = noon, noon
	later.Plan.Groups = slices.Clone(later.Plan.Groups)
	later.Plan.Groups[0].Reasons = []planner.Reason{{Code: planner.Capped, Message: "the same, one second later"}}
	if frames := hub.news(later); len(frames) != 0 {
		t.Errorf("%d events: %s", len(frames), frames[0].text)
	}
}

func TestTheStreamOfTheFleetBeginsWithAStatusOfEachClusterAndTellsOfThoseGone(t *testing.T) {
	w, hub, caller := streaming(t, nil)
	w.fleet[otherKey] = View{Key: otherKey, Mode: nodepool.Off}
	events, _ := heard(t, caller, nodepool.ClusterKey{})
	if got := kindsOf(t, events, 2); !slices.Equal(got, []string{"status", "status"}) {
		t.Fatalf("it begins with %v", got)
	}
	hub.Gone(nodepool.ClusterKey{Namespace: "ml", Name: "former"})
	if event := next(t, events); event.Kind != "gone" || string(event.Data) != `{"namespace":"ml","name":"former"}` {
		t.Errorf("%s %s", event.Kind, event.Data)
	}
	hub.Gone(otherKey) // it is there again
	hub.Changed(otherKey)
	if got := kindsOf(t, events, 3); !slices.Equal(got, []string{"status", "demand", "plan"}) {
		t.Errorf("a cluster that is there again: %v", got)
	}
}

// Each of the limits of a connection would end an ordinary answer within that time.
func TestAStreamOutlivesTheLimitsOfAnOrdinaryAnswer(t *testing.T) {
	const beats = 2 * int(writeTimeout/eventHeartbeat)
	bothWays(t, func(t *testing.T, url string, ours, theirs *tls.Config) {
		hub := NewHub()
		w, _ := wiredServer(t, func(c *Config) { c.Fleet, c.Hub, c.TLS = fakeFleet{llm: busyView()}, hub, ours })
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
		if err != nil || !strings.HasSuffix(string(rest), "event: end\ndata: {\"reason\":\"the server ends\"}\n\n") {
			t.Errorf("%v: it ends with %q", err, rest)
		}
	})
}

func TestAStreamOfAReaderThatTakesNothingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := NewHub()
		w, _ := wiredServer(t, func(c *Config) { c.Access, c.Fleet, c.Hub = nil, fakeFleet{llm: busyView()}, hub })
		connection, err := w.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if _, err := io.WriteString(connection, "GET "+llmPath+"/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(eventPatience - time.Second)
		if hub.listening.Load() != 1 {
			t.Errorf("%d listeners before its patience is over", hub.listening.Load())
		}
		time.Sleep(2 * time.Second)
		if hub.listening.Load() != 0 {
			t.Error("it is still waited for")
		}
	})
}

func TestAStreamEndsWithItsTimeAndTheClientSaysSo(t *testing.T) {
	_, _, caller := streaming(t, func(_ *http.Server, h *Hub) { h.life = time.Millisecond })
	err := caller.Follow(t.Context(), llm, func(client.Event) error { return nil })
	if !errors.Is(err, client.ErrStreamEnded) || !strings.Contains(err.Error(), "streams last 1ms") {
		t.Errorf("%v", err)
	}
}

func TestTheServerEndsWithoutWaitingForListeners(t *testing.T) {
	_, hub, caller := streaming(t, nil)
	events, ended := heard(t, caller, llm)
	next(t, events)
	hub.Close()
	for range events {
	}
	if err := <-ended; !errors.Is(err, client.ErrStreamEnded) {
		t.Errorf("%v", err)
	}
	err := caller.Follow(t.Context(), llm, func(client.Event) error { return nil })
	var problem *apiv1.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable {
		t.Errorf("a stream of a server that ends: %v", err)
	}
}

func TestWithoutListenersTheHubKeepsNothing(t *testing.T) {
	h := NewHub()
	h.fleet = fakeFleet{llm: busyView()}
	h.Changed(llm)
	if len(h.changed) != 0 || h.done != nil {
		t.Error("something is kept for nobody")
	}
	l := newListener(func(nodepool.ClusterKey) bool { return true })
	if err := h.add(l); err != nil {
		t.Fatal(err)
	}
	h.Changed(llm)
	<-l.wake
	h.remove(l)
	<-h.done
	if len(h.told) != 0 {
		t.Error("what was told is kept for nobody")
	}
	if n := testing.AllocsPerRun(100, func() { h.Changed(llm) }); n != 0 {
		t.Errorf("a decision that nobody hears of makes %v allocations", n)
	}
}

func TestTheHubTakesNoMoreListenersThanItMay(t *testing.T) {
	h := NewHub()
	for range maxListeners {
		h.listeners[newListener(nil)] = true
	}
	if err := h.add(newListener(nil)); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

// One decision, told to a thousand listeners: from the change until all have it.
func BenchmarkHubOfAThousandListeners(b *testing.B) {
	fleet := &movingFleet{}
	h := NewHub()
	h.fleet, h.pause = fleet, 0
	defer h.Close()
	listeners := make([]*listener, 1000)
	for i := range listeners {
		listeners[i] = newListener(func(key nodepool.ClusterKey) bool { return key == llm })
		if err := h.add(listeners[i]); err != nil {
			b.Fatal(err)
		}
	}
	view, desired := busyView(), 0
	b.ReportAllocs()
	for b.Loop() {
		desired++
		view.Plan.Groups = slices.Clone(view.Plan.Groups)
		view.Plan.Groups[0].Desired = desired
		fleet.set(view)
		h.Changed(llm)
		for _, l := range listeners {
			<-l.wake
			l.take()
		}
	}
}

func BenchmarkHubWithoutListeners(b *testing.B) {
	h := NewHub()
	b.ReportAllocs()
	for b.Loop() {
		h.Changed(llm)
	}
}
