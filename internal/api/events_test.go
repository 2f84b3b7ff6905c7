package api

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/addon"
)

func TestAStreamEndsIfItsReaderStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := &movingFleet{}
		fleet.set(busy())
		network := wiredServer(t, func(c *Config) { c.Fleet = fleet })
		connection, err := network.Dial(t.Context(), "", "")
		must(t, err)
		defer connection.Close()
		if _, err := io.WriteString(connection, "GET "+llmPath+"/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(streamTimeout + 2*time.Second)
		slow := time.Now()
		if text, _ := io.ReadAll(connection); time.Since(slow) > 0 || len(text) > 0 {
			t.Errorf("the stream goes on for %v after the timeout: %s", time.Since(slow), last(text))
		}
	})
}

// event is one server-sent event.
type event struct{ kind, data string }

// eventsOf returns a function that reads the next event of a stream; its kind is "" when the stream has ended.
func eventsOf(t *testing.T, network *memNetwork) func() event {
	t.Helper()
	lines := bufio.NewScanner(aliceGets(t, network.Transport(t, nil), "http://127.0.0.1"+llmPath+"/events").Body)
	return func() (e event) {
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
	synctest.Test(t, func(t *testing.T) {
		fleet, division := &movingFleet{}, &fakeDivision{own: map[string]bool{"llm": true}}
		fleet.set(busy())
		next := eventsOf(t, wiredServer(t, func(c *Config) { c.Fleet, c.Division = fleet, division }))
		want := func(kind, data string) {
			t.Helper()
			if got := next(); got.kind != kind || !strings.Contains(got.data, data) {
				t.Fatalf("got %+v, want %s with %s", got, kind, data)
			}
		}
		want("status", `"name":"llm"`)
		time.Sleep(10 * time.Second) // the same decision is no event
		grown := busy()
		grown.Plan.Groups = slices.Clone(grown.Plan.Groups)
		grown.Plan.Groups[1].Desired = 3
		fleet.set(grown)
		want("status", `"desired":7`)
		fleet.set(View{Decision: &addon.Decision{}})
		want("gone", `{"name":"llm","namespace":"ml"}`)
		fleet.set(grown)
		want("status", `"name":"llm"`)
		division.change(func() { division.own = nil })
		want("end", "ml/llm has moved to another replica")
		want("", "")
	})
}

// The timeouts of a connection would end an ordinary answer in this time.
func TestAStreamHasNoWriteTimeoutButAMaximumAge(t *testing.T) {
	bothWays(t, func(t *testing.T, url string, ours, theirs *tls.Config) {
		w := wiredServer(t, func(c *Config) { c.Fleet, c.TLS = fakeFleet{llm: busy()}, ours })
		began := time.Now()
		response := aliceGets(t, w.Transport(t, theirs), url+llmPath+"/events")
		if got := response.Header.Get("Content-Type"); got != "text/event-stream" || (response.ProtoMajor == 2) != (ours != nil) {
			t.Fatalf("Content-Type is %q over %s", got, response.Proto)
		}
		all, err := io.ReadAll(response.Body)
		if took := time.Since(began); err != nil || !strings.HasSuffix(string(all), "event: end\ndata: {\"reason\":\"a stream lasts 30m0s; open a new one\"}\n\n") ||
			strings.Count(string(all), ": keep-alive\n") < 100 || took < streamAge || took > streamAge+time.Minute {
			t.Errorf("%v: after %v it ends with %q", err, took, last(all))
		}
	})
}

func last(text []byte) string { return string(text[max(0, len(text)-200):]) }

// A token may be revoked, or a right removed, while a stream is open.
func TestAStreamEndsWithTheRightToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var revoked atomic.Bool
		w := wiredServer(t, func(c *Config) {
			c.Fleet = fakeFleet{llm: busy()}
			c.Access = &fakeAccess{allowed: func(access.Caller, access.Right) bool { return !revoked.Load() }}
		})
		began := time.Now()
		time.AfterFunc(time.Minute, func() { revoked.Store(true) })
		text, err := io.ReadAll(aliceGets(t, w.Transport(t, nil), "http://127.0.0.1"+llmPath+"/events").Body)
		if err != nil || !strings.Contains(string(text), "event: end\ndata: ") || !strings.Contains(string(text), "may not get rayclusters") ||
			time.Since(began) > time.Minute+2*streamBeat {
			t.Errorf("after %v, %v: %s", time.Since(began), err, last(text))
		}
	})
}

func TestTheShutdownEndsStreamsOfThisAndOfAnotherReplica(t *testing.T) {
	leader := serving(t, func(c *Config) { c.Fleet, c.Leadership = newFixture(t).fleet, &fakeLeadership{leads: true} })
	follower, _ := behind(t, hostOf(leader))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, follower.URL+llmPath+"/events", nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer alice")
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", response, err)
	}
	defer response.Body.Close()
	if err := follower.Config.Shutdown(t.Context()); err != nil {
		t.Errorf("the server that passes a stream on does not end: %v", err)
	}
	if err := leader.Config.Shutdown(t.Context()); err != nil {
		t.Errorf("the server of a stream does not end: %v", err)
	}
}
