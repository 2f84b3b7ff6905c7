package api

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
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// streaming starts a server with a hub that dispatches without pauses.
func streaming(t *testing.T, config HubConfig) (*fixture, *Hub, *apiv1.Client) {
	t.Helper()
	config.Interval = -1
	hub := NewHub(config)
	w := newFixture(t)
	server, err := NewServer(Config{Fleet: w.fleet, Requests: w.requests, Now: func() time.Time { return w.now }, Hub: hub})
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
