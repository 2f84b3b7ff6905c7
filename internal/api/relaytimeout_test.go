package api

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// oldLeader and newLeader are addresses of replicas. On a network in memory, all addresses lead to one server.
const (
	oldLeader = "10.0.0.1:8090"
	newLeader = "10.0.0.2:8090"
)

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

func TestACallEndsWhenTheLeaderLosesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrived := make(chan struct{})
		follower, leadership := wiredBehind(t, servingInMemory(t, func(_ http.ResponseWriter, r *http.Request) {
			close(arrived)
			<-r.Context().Done()
		}))
		go func() {
			<-arrived
			leadership.becomes("", false) // the lease expires
		}()
		begun := time.Now()
		refused(t, "it hangs", follower, http.StatusServiceUnavailable, "does not lead any more; the call may still have taken effect")
		if took := time.Since(begun); took > 500*time.Millisecond {
			t.Errorf("the answer came after %v, want within %v", took, 500*time.Millisecond)
		}
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

func TestARelayedLongPollWaitsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follower, _ := wiredBehind(t, servingInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(writeTimeout + 20*time.Second):
				fmt.Fprint(w, "{}")
			case <-r.Context().Done():
			}
		}))
		response := aliceGets(t, follower.Transport(t, nil), "http://127.0.0.1"+llmPath+"/request_resources/one?wait=30s")
		if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK || string(body) != "{}" {
			t.Errorf("a long poll: %s, %s, %v", response.Status, body, err)
		}
	})
}

func TestRelayedStreamsEndWithTheLeader(t *testing.T) {
	bothWays(t, func(t *testing.T, url string, ours, theirs *tls.Config) {
		hub := NewHub(HubConfig{})
		t.Cleanup(hub.Close)
		leader := wiredServer(t, func(c *Config) {
			c.Fleet, c.Hub, c.Leadership = fakeFleet{llm: busy()}, hub, &fakeLeadership{leads: true}
		})
		follower, leadership := wiredBehind(t, leader, func(c *Config) { c.TLS = ours })
		begun := time.Now()
		lines := bufio.NewReader(aliceGets(t, follower.Transport(t, theirs), url+llmPath+"/events").Body)
		first, err := lines.ReadString('\n')
		if err != nil || !strings.HasPrefix(first, "id: ") || time.Since(begun) > 0 {
			t.Fatalf("after %v the stream begins with %q, %v", time.Since(begun), first, err)
		}
		for time.Since(begun) < 3*writeTimeout { // an ordinary answer would have ended
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatalf("the stream ended after %v: %v", time.Since(begun), err)
			}
		}
		leadership.becomes(newLeader, true)
		changed := time.Now()
		if _, err := io.Copy(io.Discard, lines); err == nil {
			t.Error("a stream that was cut off looks as if it had ended in order")
		}
		if took := time.Since(changed); took > 500*time.Millisecond {
			t.Errorf("it is cut off %v after another replica leads, want within %v", took, 500*time.Millisecond)
		}
	})
}
