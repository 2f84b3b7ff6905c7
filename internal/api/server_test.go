package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/api"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

var update = flag.Bool("update", false, "rewrite testdata/*.json")

var otherKey = nodepool.ClusterKey{Namespace: "ml", Name: "quiet"}

func TestAnswersMatchTheGoldenFiles(t *testing.T) {
	w := newFixture(t)
	w.fleet[otherKey] = View{Decision: &addon.Decision{Cluster: otherKey, Mode: nodepool.Off, Why: planner.Reason{Message: "annotation heliostat.dev/mode"}}}
	w.fleet[nodepool.ClusterKey{Namespace: "dev", Name: "zoo"}] = View{Decision: &addon.Decision{Cluster: nodepool.ClusterKey{Namespace: "dev", Name: "zoo"}, Mode: nodepool.Shadow}}
	for name, path := range map[string]string{
		"fleet.json":     "/v1/rayclusters",
		"namespace.json": "/v1/namespaces/ml/rayclusters",
		"cluster.json":   llmPath,
		"empty.json":     "/v1/namespaces/ml/rayclusters/quiet",
		"snapshot.json":  llmPath + "/snapshot",
		"problem.json":   "/v1/namespaces/ml/rayclusters/unknown",
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			must(t, json.Indent(&got, w.call(http.MethodGet, path, "").Body.Bytes(), "", "  "))
			file := filepath.Join("testdata", name)
			if *update {
				must(t, os.WriteFile(file, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(file)
			must(t, err)
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("GET %s (-want +got):\n%s", path, diff)
			}
		})
	}
}

func TestThereIsNoSnapshotBeforeTheFirstDecision(t *testing.T) {
	w := newFixture(t)
	w.fleet[llm] = View{Decision: &addon.Decision{Cluster: llm}}
	answer := w.call(http.MethodGet, llmPath+"/snapshot", "")
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q; want 503 and seconds", answer.Code, answer.Header().Get("Retry-After"))
	}
}

func TestReadinessHasAReason(t *testing.T) {
	var reason error
	w := newFixture(t, func(c *Config) { c.Ready = func() error { return reason } })
	if got := w.call(http.MethodGet, "/readyz", ""); got.Code != http.StatusOK || got.Body.String() != "ok\n" {
		t.Errorf("ready: %d %q", got.Code, got.Body)
	}
	reason = errors.New("the cache of RayClusters is not filled yet")
	if got := w.call(http.MethodGet, "/readyz", ""); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), reason.Error()) {
		t.Errorf("not ready: %d %q", got.Code, got.Body)
	}
	if got := w.call(http.MethodGet, "/healthz", ""); got.Code != http.StatusOK {
		t.Errorf("alive although not ready: %d", got.Code)
	}
}

func TestPageMetricsAndSpecAreServed(t *testing.T) {
	serve := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	w := newFixture(t, func(c *Config) { c.Page, c.Metrics = serve("page"), serve("metrics") })
	for path, want := range map[string]string{"/": "page", "/metrics": "metrics", "/openapi.yaml": string(api.Spec)} {
		if got := w.call(http.MethodGet, path, ""); got.Code != http.StatusOK || got.Body.String() != want {
			t.Errorf("GET %s: %d, %d bytes", path, got.Code, got.Body.Len())
		}
	}
	if got := newFixture(t).call(http.MethodGet, "/metrics", ""); got.Code != http.StatusNotFound {
		t.Errorf("metrics that are not configured: %d", got.Code)
	}
}

func TestWithoutAccessOnlyLoopbackHostsAreAnswered(t *testing.T) {
	w := newFixture(t)
	guarded := newFixture(t, func(c *Config) { c.Listen, c.Access = ":8090", &fakeAccess{} })
	for host, want := range map[string]int{
		"127.0.0.1:8090": 200, "localhost": 200, "localhost:1": 200, "[::1]:8090": 200, "[::1]": 200, "127.3.2.1": 200,
		"evil.example": 421, "evil.example:8090": 421, "10.0.0.1:8090": 421, "localhost.evil.example": 421, "": 421,
	} {
		request := httptest.NewRequest(http.MethodGet, "/v1/rayclusters", nil)
		request.Host = host
		request.Header.Set("Authorization", "Bearer alice")
		recorder := w.send(request)
		if recorder.Code != want {
			t.Errorf("Host %q: %d, want %d", host, recorder.Code, want)
		}
		recorder = guarded.send(request)
		if recorder.Code != http.StatusOK {
			t.Errorf("Host %q where callers are known: %d", host, recorder.Code)
		}
	}
}

func TestTheDetailsOfAPanicAreInTheLogOnly(t *testing.T) {
	var log bytes.Buffer
	w := newFixture(t, func(c *Config) {
		c.Ready = func() error { panic("secret of the house") }
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	got := w.call(http.MethodGet, "/readyz", "")
	if got.Code != http.StatusInternalServerError || strings.Contains(got.Body.String(), "secret") {
		t.Errorf("answer: %d %s", got.Code, got.Body)
	}
	if !strings.Contains(log.String(), "secret of the house") {
		t.Errorf("log: %s", log.String())
	}
}

func TestConfigWithoutAccessAllowsOnlyLoopback(t *testing.T) {
	for listen, want := range map[string]string{
		"": "", "127.0.0.1:8090": "", "localhost:0": "", "[::1]:8090": "", "127.9.9.9:1": "", "[::ffff:127.0.0.1]:1": "",
		":8090": "without authentication", "0.0.0.0:8090": "without authentication", "10.1.2.3:8090": "without authentication",
		"[::]:8090": "without authentication", "myhost:8090": "without authentication",
		"8090": "without authentication",
	} {
		config := Config{Fleet: fakeFleet{}, Requests: &fakeRequests{}, Owned: noOwned{}, Listen: listen}
		err := config.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Listen %q: %v, want %q", listen, err, want)
		}
		config.Access = &fakeAccess{}
		if err := config.Validate(); want == "without authentication" && err != nil {
			t.Errorf("Listen %q with authentication: %v", listen, err)
		}
	}
	if _, err := NewServer(Config{}); err == nil {
		t.Error("a server without a fleet was made")
	}
}

func TestTheServerLimitsConnections(t *testing.T) {
	s, err := NewServer(Config{Fleet: fakeFleet{}, Requests: &fakeRequests{}, Owned: noOwned{}})
	must(t, err)
	if s.ReadHeaderTimeout == 0 || s.ReadTimeout == 0 || s.WriteTimeout == 0 || s.IdleTimeout == 0 || s.MaxHeaderBytes == 0 {
		t.Errorf("an unlimited connection: %+v", s)
	}
	if s.Addr != DefaultListen {
		t.Errorf("Addr %q", s.Addr)
	}
	if kubernetesTimeout >= s.WriteTimeout {
		t.Error("the connection ends before Kubernetes' time is up")
	}
}

// hangingOwned is a store that does not answer.
type hangingOwned struct{ *fakeOwned }

func (hangingOwned) Put(ctx context.Context, _ nodepool.OwnedRequest, _ func(*nodepool.OwnedRequest) error) (nodepool.OwnedRequest, bool, error) {
	<-ctx.Done()
	return nodepool.OwnedRequest{}, false, fmt.Errorf("client rate limiter Wait returned an error: %w", ctx.Err())
}

func TestUnfinishedCallsAreUnavailableAtShutdown(t *testing.T) {
	asks := func(*testing.T) io.Reader {
		return strings.NewReader(`{"bundles":[{"resources":{"CPU":1}}],"holdUntilDeleted":true}`)
	}
	neverComes := func(t *testing.T) io.Reader {
		body, rest := io.Pipe()
		t.Cleanup(func() { rest.Close() })
		return body
	}
	for name, c := range map[string]struct {
		method, path string
		body         func(*testing.T) io.Reader
		// follows means that the call is passed on to a leader that does not answer.
		follows bool
	}{
		"Kubernetes does not answer":         {method: http.MethodPut, path: llmPath + "/request_resources/one", body: asks},
		"the replica that decides is silent": {method: http.MethodPut, path: llmPath + "/request_resources/one", body: asks, follows: true},
		"the body does not come":             {method: http.MethodPut, path: llmPath + "/request_resources/one", body: neverComes},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, url string, ours, theirs *tls.Config) {
				owned := hangingOwned{newFakeOwned()}
				kept := nodepool.OwnedRequest{}
				kept.Cluster, kept.ID = llm, "kept"
				owned.keep(kept)
				config := Config{Access: &fakeAccess{}, Fleet: fakeFleet{llm: busy()}, Requests: newFixture(t).requests, Owned: owned, TLS: ours}
				if c.follows {
					config.Leadership = &fakeLeadership{address: oldLeader, known: true}
				}
				silent := servingInMemory(t, func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // until then the server does not notice that the caller is gone
					<-r.Context().Done()
				})
				config.dialLeader = silent.Dial
				running, err := NewServer(config)
				must(t, err)
				w := newMemNetwork()
				w.Serve(t, running)

				begun, ended := time.Now(), make(chan error, 1)
				time.AfterFunc(time.Second, func() {
					grace, done := context.WithTimeout(context.Background(), FinishWithin+time.Second)
					defer done()
					ended <- running.Shutdown(grace)
				})
				request, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, c.body(t))
				must(t, err)
				request.Header.Set("Authorization", "Bearer alice")
				request.Header.Set("Content-Type", "application/json")
				response, err := w.Transport(t, theirs).RoundTrip(request)
				if err != nil {
					t.Fatalf("no answer: %v", err)
				}
				text, err := io.ReadAll(response.Body)
				if err != nil {
					t.Error(err)
				}
				wantUnavailable(t, name, response, string(text), "the server is shutting down and did not finish this call")
				if took := time.Since(begun); took != time.Second+FinishWithin {
					t.Errorf("answered after %v, want it %v after the end began", took, FinishWithin)
				}
				if err := <-ended; err != nil {
					t.Errorf("the server ends: %v", err)
				}
			})
		})
	}
}

// listening starts a server of NewServer on its own port.
func listening(t *testing.T) func() (net.Conn, error) {
	t.Helper()
	server, err := NewServer(Config{Fleet: fakeFleet{}, Requests: newFixture(t).requests, Owned: noOwned{}})
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go func() { _ = server.Serve(listener) }() // returns after Close
	t.Cleanup(func() { server.Close() })
	return func() (net.Conn, error) { return net.Dial("tcp", listener.Addr().String()) }
}

// speak writes text to a new connection. It returns the answer until the server closes the connection, or its first
// line.
func speak(t *testing.T, dial func() (net.Conn, error), text string, firstLine bool) string {
	t.Helper()
	connection, err := dial()
	must(t, err)
	defer connection.Close()
	must(t, connection.SetDeadline(time.Now().Add(time.Minute)))
	go func() { _, _ = io.WriteString(connection, text) }() // the server may answer and close before it has read all
	if firstLine {
		line, err := bufio.NewReader(connection).ReadString('\n')
		if err != nil {
			t.Fatalf("no line came back: %v", err)
		}
		return line
	}
	answer, err := io.ReadAll(connection)
	if err != nil {
		t.Fatalf("the server keeps the connection: %v", err)
	}
	return string(answer)
}

func TestAConnectionOfASlowClientTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wiredServer(t, func(c *Config) { c.Access = nil })
		dial := func() (net.Conn, error) { return w.Dial(t.Context(), "", "") }
		begun := time.Now()
		if got := speak(t, dial, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", false); strings.Contains(got, "200 OK") {
			t.Errorf("a header that does not end: %q", got)
		}
		if held := time.Since(begun); held > readHeaderTimeout+time.Second {
			t.Errorf("a header that does not end holds the connection for %v", held)
		}
		begun = time.Now()
		post := "POST " + llmPath + "/request_resources HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
		got := speak(t, dial, post, false)
		if !strings.HasPrefix(got, "HTTP/1.1 408 ") || !strings.Contains(got, problemBase+"slow-body") || !strings.Contains(got, "application/problem+json") {
			t.Errorf("a body that does not come: %q", got)
		}
		if held := time.Since(begun); held > readTimeout+time.Second {
			t.Errorf("a body that does not come holds the connection for %v", held)
		}
	})
}

func TestAShortOrHugeBodyIsAProblem(t *testing.T) {
	to := listening(t)
	head := "POST " + llmPath + "/request_resources HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
	for name, test := range map[string]struct{ text, want string }{
		"chunks that are none":     {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 "},
		"huge chunks":              {head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat(fmt.Sprintf("8000\r\n%s\r\n", strings.Repeat(" ", 0x8000)), 17), "HTTP/1.1 413 "},
		"a length and chunks":      {head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "HTTP/1.1 "},
		"two lengths":              {head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "HTTP/1.1 400 "},
		"a header as net/http has": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Huge: " + strings.Repeat("a", maxHeader+8<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		"no host":                  {"GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
		"what is not HTTP":         {"\x16\x03\x01\x00\xa5\r\n\r\n", "HTTP/1.1 400 "},
	} {
		if got := speak(t, to, test.text, true); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %s", name, got, test.want)
		}
	}
}

// The chart installs the image of its appVersion, so the program must have the same version.
func TestTheReleaseMatchesTheChart(t *testing.T) {
	text, err := os.ReadFile("../../deploy/chart/Chart.yaml")
	must(t, err)
	var chart struct{ AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil || chart.AppVersion != Release {
		t.Errorf("%v: the chart's appVersion is %q, the program's release %q", err, chart.AppVersion, Release)
	}
}
