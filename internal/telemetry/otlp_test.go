package telemetry

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"heliostat.dev/heliostat/internal/addon"
)

// collector is an OTLP collector that keeps the names of spans and metrics.
type collector struct {
	collectortrace.UnimplementedTraceServiceServer

	mu      sync.Mutex // protects the fields below
	spans   map[string]int
	metrics map[string]int
	service string

	// held blocks every export until the test closes it; then the collector refuses them. If nil, it accepts exports.
	held chan struct{}
}

// refuses waits until held is closed, and returns an error if held is set.
func (c *collector) refuses() error {
	if c.held == nil {
		return nil
	}
	<-c.held
	return status.Error(codes.InvalidArgument, "no")
}

func (c *collector) Export(_ context.Context, request *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	if err := c.refuses(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, a := range resource.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				c.service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans[span.GetName()]++
			}
		}
	}
	return &collectortrace.ExportTraceServiceResponse{}, nil
}

// metricsService is a separate type because its method has the same name as that of collector.
type metricsService struct {
	collectormetrics.UnimplementedMetricsServiceServer
	*collector
}

func (m metricsService) Export(_ context.Context, request *collectormetrics.ExportMetricsServiceRequest) (*collectormetrics.ExportMetricsServiceResponse, error) {
	if err := m.refuses(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, resource := range request.GetResourceMetrics() {
		for _, scope := range resource.GetScopeMetrics() {
			for _, metric := range scope.GetMetrics() {
				m.metrics[metric.GetName()]++
			}
		}
	}
	return &collectormetrics.ExportMetricsServiceResponse{}, nil
}

func newCollector() *collector {
	return &collector{spans: map[string]int{}, metrics: map[string]int{}}
}

// overGRPCNow starts the collector with gRPC and sets the endpoint in the environment.
func (c *collector) overGRPCNow(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collectortrace.RegisterTraceServiceServer(server, c)
	collectormetrics.RegisterMetricsServiceServer(server, metricsService{collector: c})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
}

// lines is a log that is safe for concurrent use.
type lines struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.out.String(), text)
}

// exporting starts telemetry with the settings of the environment.
func exporting(t *testing.T) (*Telemetry, *lines) {
	t.Helper()
	out := &lines{}
	report, err := Start(t.Context(), Config{Getenv: os.Getenv, Version: "v1", Log: slog.New(slog.NewTextHandler(out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return report, out
}

func emit(report *Telemetry) {
	report.observe(addon.Decision{})
	_, end := report.Begin(context.Background(), "ml", "llm")
	end(&addon.Decision{At: noon, Took: time.Second, Observed: time.Second})
}

func TestACollectorReceivesMetricsAndSpans(t *testing.T) {
	c := newCollector()
	c.overGRPCNow(t)
	report, out := exporting(t)
	emit(report)
	if err := report.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, span := range []string{"cycle", "observe", "plan", "apply"} {
		if c.spans[span] != 1 {
			t.Errorf("%d spans %s, want 1", c.spans[span], span)
		}
	}
	for _, metric := range []string{"heliostat_cycles_total", "heliostat_cycle_seconds", "heliostat_cluster_managed"} {
		if c.metrics[metric] != 1 {
			t.Errorf("%s came %d times, want once", metric, c.metrics[metric])
		}
	}
	if c.service != "heliostat" || out.count("level=WARN") != 0 {
		t.Errorf("service %q, log %q", c.service, out.out.String())
	}
}

func TestASilentCollectorDelaysNothingFillsNoMemoryAndIsLoggedOnceAMinute(t *testing.T) {
	c := newCollector()
	c.held = make(chan struct{})
	c.overGRPCNow(t)
	release := sync.OnceFunc(func() { close(c.held) })
	t.Cleanup(release) // runs before the server stops, which waits for its calls
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000")
	report, out := exporting(t)
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	emit(report)
	before := heap()
	const cycles = 5_000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range cycles {
			emit(report)
		}
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Minute): // an export would wait for one hour
		release()
		t.Fatal("cycles wait for the collector")
	}
	if grown := int64(heap()) - int64(before); grown > 6<<20 {
		t.Errorf("%d spans that nobody takes hold %d KiB", 4*cycles, grown>>10)
	}
	release()
	if err := report.Shutdown(t.Context()); err == nil {
		t.Error("want the error of the last export")
	}
	if got := out.count("not exported"); got != 1 {
		t.Errorf("reported %d times, want once: %s", got, out.out.String())
	}
}

func TestTheEnvironmentSaysWhetherAndHowToExport(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for name, c := range map[string]struct {
		env  map[string]string
		want string
		bad  bool
	}{
		"nothing is set":              {},
		"an endpoint":                 {env: map[string]string{endpoint: "http://c"}, want: overHTTP},
		"one for the other signal":    {env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c"}},
		"one for this signal":         {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, want: overHTTP},
		"gRPC":                        {env: map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, want: overGRPC},
		"a protocol for this signal":  {env: map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": overHTTP}, want: overHTTP},
		"the SDK is disabled":         {env: map[string]string{endpoint: "http://c", "OTEL_SDK_DISABLED": "true"}},
		"no exporter for this signal": {env: map[string]string{endpoint: "http://c", "OTEL_TRACES_EXPORTER": "none"}},
		"a protocol that is unknown":  {env: map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, bad: true},
		"an exporter that is unknown": {env: map[string]string{endpoint: "http://c", "OTEL_TRACES_EXPORTER": "zipkin"}, bad: true},
	} {
		got, err := exportOver("TRACES", func(key string) string { return c.env[key] })
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
