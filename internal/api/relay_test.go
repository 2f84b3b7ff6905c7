package api

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/access"
)

func TestAFollowerAnswersAsTheLeaderDoes(t *testing.T) {
	var w *fixture
	leader := serving(t, func(c *Config) {
		w = newFixture(t)
		c.Fleet, c.Requests, c.Clusters = w.fleet, w.requests, fakeWriter{fakeFreezer: w.frozen}
		c.Leadership = &fakeLeadership{leads: true}
	})
	follower, _ := behind(t, hostOf(leader))
	for _, path := range []string{"/v1/rayclusters", "/v1/namespaces/ml/rayclusters", llmPath, llmPath + "/snapshot", "/v1/namespaces/ml/rayclusters/none"} {
		here, hereText := ask(t, leader, http.MethodGet, path, "")
		there, thereText := ask(t, follower, http.MethodGet, path, "")
		if here.StatusCode != there.StatusCode || len(thereText) == 0 {
			t.Errorf("%s: %s through the other replica, %s at the leader: %s", path, there.Status, here.Status, thereText)
		}
		if path == "/v1/rayclusters" && hereText != thereText && !strings.Contains(thereText, `"llm"`) {
			t.Errorf("%s: %s, want %s", path, thereText, hereText)
		}
		for name, values := range there.Header {
			if len(values) != 1 || len(here.Header[name]) != 1 {
				t.Errorf("%s: header %s is %q, at the leader %q", path, name, values, here.Header[name])
			}
		}
	}
	if response, body := ask(t, follower, http.MethodPost, llmPath+"/request_resources", `{"num_cpus":4}`); response.StatusCode != http.StatusOK || w.requests.sets != 1 {
		t.Errorf("a write: %s, %s, written %d times", response.Status, body, w.requests.sets)
	}
	if response, body := ask(t, follower, http.MethodDelete, llmPath+"/request_resources", ""); response.StatusCode != http.StatusNoContent || body != "" || w.requests.sets != 2 {
		t.Errorf("a deletion: %s, %q, written %d times", response.Status, body, w.requests.sets)
	}
	if response, _ := ask(t, follower, http.MethodPost, llmPath+"/request_resources", `num_cpus=4`, "Content-Type", "text/plain"); response.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a body that is not JSON: %s", response.Status)
	}
}

// An empty list would mean that there are no clusters.
func TestWithoutALeaderAllOperationsAreUnavailable(t *testing.T) {
	follower, leadership := behind(t, "")
	calls := 0
	for _, known := range []struct{ says, address string }{{"no replica leads now", ""}, {"no address to pass calls on to; call that replica directly", "-"}} {
		leadership.becomes("", known.address != "")
		loadSpec(t).guarded(func(path, method string, _ object) {
			if !strings.HasPrefix(path, "/v1/") {
				return
			}
			calls++
			response, body := ask(t, follower, method, filled(path, "llm"), "")
			wantUnavailable(t, method+" "+path, response, body, known.says)
		})
	}
	if calls < 30 {
		t.Errorf("only %d calls were made", calls)
	}
}

func TestAFollowerAnswersProbesMetricsAndThePageItself(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "mine") })
	follower, _ := behind(t, "", func(c *Config) { c.Page, c.Metrics = page, page })
	for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml", "/", "/metrics"} {
		if response, body := ask(t, follower, http.MethodGet, path, ""); response.StatusCode != http.StatusOK || body == "" {
			t.Errorf("%s: %s, %s", path, response.Status, body)
		}
	}
}

func TestACallIsPassedOnOnce(t *testing.T) {
	a, aKnows := behind(t, "-")
	b, _ := behind(t, hostOf(a))
	var calls atomic.Int32
	counted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		b.Config.Handler.ServeHTTP(w, r)
	}))
	defer counted.Close()
	aKnows.becomes(hostOf(counted), true)
	response, body := ask(t, a, http.MethodGet, llmPath, "")
	wantUnavailable(t, "two that take each other for the leader", response, body, "another replica passed this call on")
	if calls.Load() != 1 {
		t.Errorf("the call went round %d times", calls.Load())
	}
	leader := serving(t, func(c *Config) { c.Fleet, c.Leadership = newFixture(t).fleet, &fakeLeadership{leads: true} })
	if response, body := ask(t, leader, http.MethodGet, llmPath, "", "X-Heliostat-Passed-On", "1"); response.StatusCode != http.StatusOK {
		t.Errorf("the leader itself: %s, %s", response.Status, body)
	}
}

func TestATooLargeBodyDoesNotReachTheLeader(t *testing.T) {
	var got atomic.Int64
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		got.Add(n)
	}))
	defer leader.Close()
	follower, _ := behind(t, hostOf(leader))
	path := llmPath + "/request_resources"
	response, text := ask(t, follower, http.MethodPost, path, strings.Repeat(" ", maxBody+1))
	if response.StatusCode != http.StatusRequestEntityTooLarge || got.Load() != 0 {
		t.Errorf("too large: %s, %d bytes passed on, %s", response.Status, got.Load(), text)
	}
	response, text = ask(t, follower, http.MethodPost, path, strings.Repeat(" ", maxBody))
	if response.StatusCode != http.StatusOK || got.Load() != maxBody {
		t.Errorf("as large as can be: %s, %d bytes passed on, %s", response.Status, got.Load(), text)
	}
}

func TestForbiddenCallsAreNotPassedOn(t *testing.T) {
	leader := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("passed on: %s", r.URL) }))
	defer leader.Close()
	follower, _ := behind(t, hostOf(leader), func(c *Config) {
		c.Access = &fakeAccess{allowed: func(access.Caller, access.Right) bool { return false }}
	})
	if response, _ := ask(t, follower, http.MethodGet, llmPath, ""); response.StatusCode != http.StatusForbidden {
		t.Errorf("without the right: %s", response.Status)
	}
	if response, _ := ask(t, follower, http.MethodGet, llmPath, "", "Authorization", ""); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", response.Status)
	}
}

func TestANewLeaderIsUnavailableUntilItKnowsAllClusters(t *testing.T) {
	leadership := &fakeLeadership{leads: true, unsettled: true}
	leader := serving(t, func(c *Config) { c.Fleet, c.Leadership = newFixture(t).fleet, leadership })
	for _, path := range []string{"/v1/rayclusters", "/v1/namespaces/ml/rayclusters", "/v1/namespaces/ml/rayclusters/later"} {
		response, body := ask(t, leader, http.MethodGet, path, "")
		wantUnavailable(t, path, response, body, "has not looked at every RayCluster yet")
	}
	if response, body := ask(t, leader, http.MethodGet, llmPath, ""); response.StatusCode != http.StatusOK {
		t.Errorf("what it has seen: %s, %s", response.Status, body)
	}
}

// oldLeader is the address of a replica. On a network in memory, all addresses lead to one server.
const oldLeader = "10.0.0.1:8090"

// wiredBehind starts a follower on one network, with its leader on another.
func wiredBehind(t *testing.T, leader *memNetwork, change ...func(*Config)) (*memNetwork, *fakeLeadership) {
	t.Helper()
	leadership := &fakeLeadership{address: oldLeader, known: true}
	w := wiredServer(t, func(c *Config) {
		c.Leadership, c.dialLeader = leadership, leader.Dial
		for _, f := range change {
			f(c)
		}
	})
	return w, leadership
}

// refused makes a call and checks its problem.
func refused(t *testing.T, what string, follower *memNetwork, status int, says string) {
	t.Helper()
	response := aliceGets(t, follower.Transport(t, nil), "http://127.0.0.1"+llmPath)
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status || !strings.Contains(string(body), says) {
		t.Errorf("%s: %s, %s, %v; want %d that says %q", what, response.Status, body, err, status, says)
	}
}

func TestALeaderThatIsGoneIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader := newMemNetwork()
		leader.Close()
		follower, _ := wiredBehind(t, leader)
		refused(t, "a leader that is gone", follower, http.StatusServiceUnavailable, "cannot reach the leader now")
	})
}

func TestACallToASlowLeaderTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follower, _ := wiredBehind(t, servingInMemory(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		begun := time.Now()
		refused(t, "it is slow", follower, http.StatusGatewayTimeout, "does not answer; the call may still have taken effect")
		if took := time.Since(begun); took != writeTimeout {
			t.Errorf("the answer came after %v, want %v", took, writeTimeout)
		}
	})
}

func TestARelayedStreamLastsLongerThanAnAnswer(t *testing.T) {
	bothWays(t, func(t *testing.T, url string, ours, theirs *tls.Config) {
		leader := wiredServer(t, func(c *Config) {
			c.Fleet, c.Leadership = fakeFleet{llm: busy()}, &fakeLeadership{leads: true}
		})
		follower, _ := wiredBehind(t, leader, func(c *Config) { c.TLS = ours })
		begun := time.Now()
		lines := bufio.NewReader(aliceGets(t, follower.Transport(t, theirs), url+llmPath+"/events").Body)
		first, err := lines.ReadString('\n')
		if err != nil || !strings.HasPrefix(first, "event: status") || time.Since(begun) > 0 {
			t.Fatalf("after %v the stream begins with %q, %v", time.Since(begun), first, err)
		}
		if rest, err := io.ReadAll(lines); err != nil || time.Since(begun) < streamAge || !strings.Contains(last(rest), "event: end") {
			t.Errorf("after %v, %v, it ends with %s", time.Since(begun), err, last(rest))
		}
	})
}
