package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/api"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

var update = flag.Bool("update", false, "rewrite testdata/*.json")

var otherKey = nodepool.ClusterKey{Namespace: "ml", Name: "quiet"}

func TestAnswersMatchTheGoldenFiles(t *testing.T) {
	w := newFixture(t)
	w.fleet[otherKey] = View{Decision: addon.Decision{Cluster: otherKey, Mode: nodepool.Off, Why: planner.Reason{Message: "annotation heliostat.dev/mode"}}}
	w.fleet[nodepool.ClusterKey{Namespace: "dev", Name: "zoo"}] = View{Decision: addon.Decision{Cluster: nodepool.ClusterKey{Namespace: "dev", Name: "zoo"}, Mode: nodepool.Shadow}}
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
			if err := json.Indent(&got, w.call(http.MethodGet, path, "").Body.Bytes(), "", "  "); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("GET %s (-want +got):\n%s", path, diff)
			}
		})
	}
}

func TestTheSnapshotIsThatOfTheLastDecision(t *testing.T) {
	w := newFixture(t)
	var got planner.Snapshot
	if err := json.Unmarshal(w.call(http.MethodGet, llmPath+"/snapshot", "").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.fleet[llm].Snapshot, got); diff != "" {
		t.Errorf("snapshot (-planned +served):\n%s", diff)
	}
}

func TestThereIsNoSnapshotBeforeTheFirstDecision(t *testing.T) {
	w := newFixture(t)
	w.fleet[llm] = View{Decision: addon.Decision{Cluster: llm}}
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
		recorder := httptest.NewRecorder()
		w.handler.ServeHTTP(recorder, request)
		if recorder.Code != want {
			t.Errorf("Host %q: %d, want %d", host, recorder.Code, want)
		}
		recorder = httptest.NewRecorder()
		guarded.handler.ServeHTTP(recorder, request)
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
		"8090": "write host:port", "127.0.0.1:http": "not a number", "127.0.0.1:70000": "not a number",
	} {
		config := Config{Fleet: fakeFleet{}, Requests: &fakeRequests{}, Listen: listen}
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
	s, err := NewServer(Config{Fleet: fakeFleet{}, Requests: &fakeRequests{}})
	if err != nil {
		t.Fatal(err)
	}
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
