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
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestTheHubRefusesTooManyStreams(t *testing.T) {
	h := NewHub()
	for range maxSubscribers {
		if _, err := h.add(busyKey); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.add(busyKey); !errors.Is(err, errFull) {
		t.Errorf("one stream too many: %v", err)
	}
}

func TestAStreamEndsIfItsReaderStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		h.SetFleet(fakeFleet{busyKey: busy()})
		network := servingInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			_ = h.FollowCluster(w, r, busyKey, func() error { return nil })
		})
		connection, err := network.Dial(t.Context(), "", "")
		must(t, err)
		defer connection.Close()
		if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(streamTimeout - time.Second)
		if streams(h) == 0 {
			t.Error("the stream has ended before the timeout")
		}
		time.Sleep(2 * time.Second)
		if streams(h) != 0 {
			t.Error("the stream goes on after the timeout")
		}
	})
}

// streams returns how many streams are open.
func streams(h *Hub) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// event is one server-sent event.
type event struct{ kind, data string }

// openStream calls for the events of a RayCluster as alice.
func openStream(t *testing.T, server *httptest.Server) io.Reader {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+llmPath+"/events", nil)
	must(t, err)
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
func streaming(t *testing.T, change func(*Hub)) (fleet *movingFleet, hub *Hub, next func() event) {
	t.Helper()
	fleet, hub = &movingFleet{}, NewHub()
	hub.pause = 0
	change(hub)
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

func TestAStreamSendsTheStateAndThenEachDecision(t *testing.T) {
	fleet, hub, next := streaming(t, func(*Hub) {})
	kinds := func(want ...string) {
		t.Helper()
		for _, kind := range want {
			if got := next(); got.kind != kind || !strings.Contains(got.data, `"name":"llm"`) {
				t.Fatalf("got %+v, want %s of %v", got, kind, want)
			}
		}
	}
	kinds("status")
	grown := busy()
	grown.Plan.Groups = slices.Clone(grown.Plan.Groups)
	grown.Plan.Groups[1].Desired = 3
	fleet.set(grown)
	hub.Changed(llm)
	kinds("status")
	fleet.set(View{Decision: &addon.Decision{}})
	hub.Changed(llm)
	if got := next(); got.kind != "gone" || got.data != `{"name":"llm","namespace":"ml"}` {
		t.Errorf("of a deleted cluster: %+v", got)
	}
	fleet.set(grown)
	hub.Changed(llm)
	kinds("status")
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
		hub := NewHub()
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
	_, _, next := streaming(t, func(h *Hub) { h.maxAge = time.Millisecond })
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
	hub := NewHub()
	hub.heartbeat = time.Millisecond
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
	_, hub, next := streaming(t, func(*Hub) {})
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
