package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
)

// secret is part of every token in TestNoTokenIsInAnyLogSpanMetricOrSnapshot.
const secret = "s3cret"

// safe collects writes from any goroutine.
type safe struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// keepsRequests stores no requests and returns errors.
type keepsRequests struct{}

func (keepsRequests) ResourceRequests(context.Context, nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	return nil, time.Time{}, api.ErrUnavailable
}
func (keepsRequests) SetResourceRequests(context.Context, nodepool.ClusterKey, []raydemand.Request, time.Time) error {
	return api.ErrUnavailable
}

// exporter returns an OTLP collector that stores the bodies of all requests, and rejects metrics.
func exporter(t *testing.T) *safe {
	bodies := &safe{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(bodies, r.Body); err != nil {
			t.Error(err)
		}
		if !strings.Contains(r.Header.Get("Authorization"), secret) {
			t.Errorf("the collector is called with %q", r.Header.Get("Authorization"))
		}
		if strings.HasSuffix(r.URL.Path, "metrics") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer "+secret+"-collector")
	return bodies
}

// TestNoTokenIsInAnyLogSpanMetricOrSnapshot uses a token for each client that has one, once where the server accepts it
// and once where the server rejects it. It then searches all reported data for the tokens.
func TestNoTokenIsInAnyLogSpanMetricOrSnapshot(t *testing.T) {
	bodies, log, registry := exporter(t), &safe{}, prometheus.NewRegistry()
	logger, err := telemetry.NewLogger(log, "json", "debug")
	must(t, err)
	told, err := telemetry.Start(t.Context(), telemetry.Config{Registerer: registry, Getenv: os.Getenv, Log: logger})
	must(t, err)

	// One head accepts the token, and one rejects it.
	for _, demanded := range []string{secret + "-ray", secret + "-other"} {
		k, guarded := atRest(t, demanded)
		k.cluster.Key.Name = strings.TrimPrefix(demanded, secret+"-")
		k.cluster.Auth = nodepool.Auth{Token: secret + "-ray", Required: true}
		config := controller.DefaultConfig()
		config.Log, config.Published = logger, func(d *addon.Decision) { told.Observe(d, nil, "") }
		loop := controller.New(k, func(context.Context, nodepool.Cluster) (addon.Ray, error) {
			return gcs.Dial(gcs.Config{Address: guarded.addr, Token: func(context.Context) (string, error) { return secret + "-ray", nil }})
		}, config)
		t.Cleanup(loop.Close)
		traced(loop, told.Tracer)(t.Context(), k.cluster.Key, false)
		d, known := loop.Decision(k.cluster.Key)
		if !known || (d.RayErr == "") != (demanded == secret+"-ray") {
			t.Fatalf("with a head that demands %s: %+v", demanded, d)
		}
		snapshot, err := json.Marshal(d)
		must(t, err)
		absent(t, "the decision", string(snapshot))
	}

	// Users call the REST API while the API server that reviews their tokens fails.
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	t.Cleanup(apiServer.Close)
	config := &rest.Config{Host: apiServer.URL, BearerToken: secret + "-kubernetes"}
	config.Wrap(told.APICalls)
	gate, err := newGate(config, nil)
	must(t, err)
	k, ray := atRest(t, "")
	handler, err := api.NewHandler(api.Config{Fleet: Fleet{Loop: loopOf(t, k, ray, logger, nil)}, Requests: keepsRequests{}, Owned: struct{ api.OwnedRequests }{}, Access: gate, Log: logger})
	must(t, err)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		request := httptest.NewRequest(method, "http://localhost/v1/namespaces/ml/rayclusters/llm/request_resources", strings.NewReader(`{"num_cpus": 1}`))
		request.Header.Set("Authorization", "Bearer "+secret+"-caller")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code < http.StatusBadRequest {
			t.Errorf("%s is answered by %d", method, answer.Code)
		}
		absent(t, "an answer", answer.Body.String())
	}

	metrics := httptest.NewRecorder()
	metricsOf(registry).ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	told.Shutdown(t.Context()) // fails because the collector rejects metrics
	for _, line := range []string{"the head does not answer", "REST call"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("no line %q is in the log", line)
		}
	}
	for what, text := range map[string]string{"the log": log.String(), "what was exported": bodies.String(), "/metrics": metrics.Body.String()} {
		if len(text) < 100 {
			t.Errorf("%s is %q, too little to be looked at", what, text)
		}
		absent(t, what, text)
	}
}

func absent(t *testing.T, what, text string) {
	t.Helper()
	if at := strings.Index(text, secret); at >= 0 {
		t.Errorf("%s has a token: …%s", what, text[max(0, at-200):min(len(text), at+40)])
	}
}
