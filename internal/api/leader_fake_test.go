package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fakeLeadership is what one replica knows about the leader.
type fakeLeadership struct {
	mu               sync.Mutex
	leads, unsettled bool
	address          string
	known            bool
}

func (f *fakeLeadership) Leads() bool   { f.mu.Lock(); defer f.mu.Unlock(); return f.leads }
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
	config := Config{Access: &fakeAccess{}, Fleet: fakeFleet{}, Requests: newFixture(t).requests}
	change(&config)
	built, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// wantUnavailable checks a 503 with Retry-After.
func wantUnavailable(t *testing.T, what string, response *http.Response, body, says string) {
	t.Helper()
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "1" || !strings.Contains(body, says) {
		t.Errorf("%s: %s, Retry-After %q, %s; want 503 that says %q", what, response.Status, response.Header.Get("Retry-After"), body, says)
	}
}
