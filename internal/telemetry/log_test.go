package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	logsv1 "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"

	"heliostat.dev/heliostat/internal/addon"
)

func TestLoggerFormats(t *testing.T) {
	for format, want := range map[string]string{"text": "reason=idle", "json": `"reason":"idle"`} {
		var out bytes.Buffer
		log, err := NewLogger(&out, format, "warn")
		if err != nil {
			t.Fatal(err)
		}
		log.Info("hidden")
		log.Warn("shown", "reason", "idle")
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "hidden") || strings.Contains(got, "trace_id") {
			t.Errorf("%s: %q", format, got)
		}
	}
	for _, bad := range [][2]string{{"xml", "info"}, {"text", "loud"}} {
		if _, err := NewLogger(&bytes.Buffer{}, bad[0], bad[1]); err == nil {
			t.Errorf("format %q and level %q: want an error", bad[0], bad[1])
		}
	}
}

func TestRecordsOfASpanCarryItsIDs(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "json", "info")
	if err != nil {
		t.Fatal(err)
	}
	spans := tracetest.NewInMemoryExporter()
	ctx, span := tracerTo(sdktrace.WithSyncer(spans)).Begin(t.Context(), "ml", "llm")
	log.InfoContext(ctx, "patched")
	span.End(CycleReport{At: noon})
	report := spans.GetSpans()[len(spans.GetSpans())-1].SpanContext
	for _, want := range []string{report.TraceID().String(), report.SpanID().String(), "ml/llm"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %s", out.String(), want)
		}
	}
}

func TestEveryRecordOfACycleNamesItsTraceAndItsClusterOnce(t *testing.T) {
	silent, err := newTracer(t.Context(), Config{Getenv: func(string) string { return "" }}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tracer := range map[string]*Tracer{
		"without a collector": silent,
		"not sampled":         tracerTo(sdktrace.WithSampler(sdktrace.NeverSample())),
	} {
		var out bytes.Buffer
		log, err := NewLogger(&out, "json", "info")
		if err != nil {
			t.Fatal(err)
		}
		ctx, _ := tracer.Begin(t.Context(), "ml", "llm")
		log.InfoContext(ctx, "one")
		log.InfoContext(ctx, "two", "cluster", "ml/llm")
		log.With("cluster", "ml/llm").WithGroup("g").InfoContext(ctx, "three")
		traces := map[string]bool{}
		for line := range strings.Lines(out.String()) {
			var record struct {
				Cluster string
				TraceID string `json:"trace_id"`
				G       struct {
					TraceID string `json:"trace_id"`
				}
			}
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			traces[record.TraceID+record.G.TraceID] = true
			if record.Cluster != "ml/llm" || strings.Count(line, `"cluster"`) != 1 {
				t.Errorf("%s: %s does not name its cluster once", name, line)
			}
		}
		if len(traces) != 1 || traces[""] {
			t.Errorf("%s: records name the traces %v, want one", name, traces)
		}
	}
}

// exported has the tested fields of an exported log record.
type exported struct {
	Body, Severity, Trace, Span string
	Flags                       uint32
	Attributes                  map[string]string
}

func exportedOf(record *logsv1.LogRecord) exported {
	e := exported{Body: record.GetBody().GetStringValue(), Severity: record.GetSeverityNumber().String(), Flags: record.GetFlags(),
		Trace: fmt.Sprintf("%x", record.GetTraceId()), Span: fmt.Sprintf("%x", record.GetSpanId()), Attributes: map[string]string{}}
	for _, a := range record.GetAttributes() {
		e.Attributes[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return e
}

// exportedBy returns the log records of write that reach the collector, in the collector's order.
func exportedBy(t *testing.T, level string, write func(report *Telemetry)) []exported {
	t.Helper()
	c := newCollector()
	c.overGRPCNow(t)
	local, err := NewLogger(&lines{}, "json", level)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Start(t.Context(), Config{Getenv: os.Getenv, Version: "v1", Log: local})
	if err != nil {
		t.Fatal(err)
	}
	write(report)
	if err := report.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all []exported
	for _, record := range c.records {
		all = append(all, exportedOf(record))
	}
	return all
}

func TestAnExportedRecordOfACycleHasItsTraceItsClusterAndItsAttributes(t *testing.T) {
	var cycle trace.SpanContext
	got := exportedBy(t, "info", func(report *Telemetry) {
		ctx, _ := report.Begin(t.Context(), "ml", "llm")
		cycle = trace.SpanContextFromContext(ctx)
		report.Log.InfoContext(ctx, "patched", "group", "gpu")
		report.Log.With("cluster", "ml/llm", "form", "fleet").ErrorContext(ctx, "cannot apply", "err", errors.New("conflict"))
		report.Log.Warn("without a cycle")
	})
	want := []exported{
		{Body: "patched", Severity: "SEVERITY_NUMBER_INFO", Trace: cycle.TraceID().String(), Span: cycle.SpanID().String(),
			Attributes: map[string]string{"cluster": "ml/llm", "group": "gpu"}},
		{Body: "cannot apply", Severity: "SEVERITY_NUMBER_ERROR", Trace: cycle.TraceID().String(), Span: cycle.SpanID().String(),
			Attributes: map[string]string{"cluster": "ml/llm", "form": "fleet", "exception.message": "conflict", "exception.type": "*errors.errorString"}},
		{Body: "without a cycle", Severity: "SEVERITY_NUMBER_WARN", Attributes: map[string]string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exported records (-want +got):\n%s", diff)
	}
}

func TestTheLevelOfTheLogIsThatOfTheExport(t *testing.T) {
	for level, want := range map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1} {
		got := exportedBy(t, level, func(report *Telemetry) {
			log := report.Log.With("form", "fleet").WithGroup("g")
			log.Debug("a")
			log.Info("b")
			log.Warn("c")
			log.Error("d")
		})
		if len(got) != want {
			t.Errorf("at level %s %d records are exported, want %d: %v", level, len(got), want, got)
		}
	}
}

func TestRecordsOfLibrariesAreExported(t *testing.T) {
	keepGlobals(t)
	got := exportedBy(t, "info", func(report *Telemetry) {
		AdoptLibraries(report.Log)
		klog.ErrorS(nil, "watching")
	})
	if len(got) != 1 || got[0].Body != "watching" || got[0].Attributes[loggerKey] != "klog" {
		t.Errorf("exported %v, want klog's record", got)
	}
}

// The collector refuses every export of logs. The log line about that failure must not be exported.
func TestAFailedExportOfLogsIsNotExported(t *testing.T) {
	c := newCollector()
	c.held = make(chan struct{})
	close(c.held)
	c.overGRPCNow(t)
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	out := &lines{}
	failed := make(chan struct{}, 1)
	report, err := Start(t.Context(), Config{Getenv: os.Getenv, Log: slog.New(signals{slog.NewTextHandler(out, nil), failed})})
	if err != nil {
		t.Fatal(err)
	}
	report.Log.Info("serving")
	<-failed // wait for the log line about the refused export
	provider := report.shutdown[len(report.shutdown)-1]
	if err := provider(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls := c.calls.Load(); calls != 1 {
		t.Errorf("the collector was called %d times, want once: %s", calls, out.out.String())
	}
	if got := out.count("signal=logs"); got != 1 {
		t.Errorf("the failure is logged %d times, want once: %s", got, out.out.String())
	}
}

// signals sends to warned after each written warning.
type signals struct {
	slog.Handler
	warned chan<- struct{}
}

func (s signals) Handle(ctx context.Context, record slog.Record) error {
	err := s.Handler.Handle(ctx, record)
	if record.Level == slog.LevelWarn {
		select {
		case s.warned <- struct{}{}:
		default:
		}
	}
	return err
}

// All log records arrive even if a metrics collector that never responds uses the whole time of the shutdown.
func TestAtTheEndOneSignalDoesNotWaitForAnother(t *testing.T) {
	silent, c := newCollector(), newCollector()
	silent.held = make(chan struct{})
	silent.overGRPCNow(t)
	t.Cleanup(func() { close(silent.held) }) // runs before the server stops, which waits for its calls
	metrics := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	c.overGRPCNow(t)
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", metrics)
	// Only the shutdown exports records, and the timeout for metrics is longer than the test.
	for _, wait := range []string{"OTEL_BLRP_SCHEDULE_DELAY", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "OTEL_METRIC_EXPORT_TIMEOUT"} {
		t.Setenv(wait, "3600000")
	}
	report, _ := exporting(t)
	report.Log.Info("serving")
	report.Observe(cycleWith(addon.Decision{}))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- report.Shutdown(ctx) }()
	c.await(ctx, t, 1)
	cancel() // otherwise, the metrics collector delays the shutdown until the timeout
	if err := <-ended; err == nil {
		t.Error("the end of telemetry reports no error, although metrics were not taken")
	}
}

// keepGlobals restores the loggers of libraries at the end of a test. gRPC's is that of TestMain all the time.
func keepGlobals(t *testing.T) {
	before, flags := slog.Default(), log.Flags()
	t.Cleanup(func() {
		grpcLog.to.Store(nil)
		klog.ClearLogger()
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
		log.SetFlags(flags)
	})
}

// grpcLog is where gRPC logs in this package's tests: to the logger of the test, if it has set one.
var grpcLog grpcHandler

// grpcHandler passes records on to the logger that to holds at that time.
type grpcHandler struct {
	to    atomic.Pointer[slog.Logger]
	attrs []slog.Attr
	root  *grpcHandler
}

func (g *grpcHandler) Enabled(context.Context, slog.Level) bool { return true }
func (g *grpcHandler) WithGroup(string) slog.Handler            { return g }
func (g *grpcHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &grpcHandler{attrs: attrs, root: g}
}

func (g *grpcHandler) Handle(ctx context.Context, record slog.Record) error {
	if to := g.root.to.Load(); to != nil && to.Enabled(ctx, record.Level) {
		return to.Handler().WithAttrs(g.attrs).Handle(ctx, record)
	}
	return nil
}

// TestMain adopts gRPC's logger once, as the program does: it has no lock, and connections of earlier tests may still
// close and log that.
func TestMain(m *testing.M) {
	AdoptGRPC(slog.New(&grpcLog))
	os.Exit(m.Run())
}

func TestLinesOfLibrariesAreLinesOfTheLog(t *testing.T) {
	keepGlobals(t)
	for name, c := range map[string]struct {
		say  func()
		want map[string]any
	}{
		"client-go's":          {func() { klog.ErrorS(errors.New("refused"), "watching") }, map[string]any{"logger": "klog", "level": "ERROR", "msg": "watching", "err": "refused"}},
		"client-go's old way":  {func() { klog.Warningf("throttled for %d s", 3) }, map[string]any{"logger": "klog", "level": "INFO", "msg": "throttled for 3 s"}},
		"gRPC's":               {func() { grpclog.Errorf("frame too large: %d", 9) }, map[string]any{"logger": "grpc", "level": "ERROR", "msg": "frame too large: 9"}},
		"the standard library": {func() { log.Print("http: superfluous call") }, map[string]any{"logger": "log", "level": "INFO", "msg": "http: superfluous call"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger, err := NewLogger(&out, "json", "info")
			if err != nil {
				t.Fatal(err)
			}
			grpcLog.to.Store(logger)
			AdoptLibraries(logger)
			c.say()
			got := map[string]any{}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%q is no line of JSON: %v", out.String(), err)
			}
			for key, want := range c.want {
				if got[key] != want {
					t.Errorf("%s is %v, want %v, in %s", key, got[key], want, out.String())
				}
			}
		})
	}
}

func TestDetailsOfLibrariesAreNotLogged(t *testing.T) {
	keepGlobals(t)
	var out bytes.Buffer
	logger, err := NewLogger(&out, "json", "info")
	if err != nil {
		t.Fatal(err)
	}
	grpcLog.to.Store(logger)
	AdoptLibraries(logger)
	klog.V(2).Info("a detail of client-go")
	grpclog.Warning("a connection failed")
	grpclog.Info("a channel was made")
	if out.Len() > 0 {
		t.Errorf("got %s, want nothing", out.String())
	}
}
