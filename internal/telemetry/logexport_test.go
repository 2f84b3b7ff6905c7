package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
	logsv1 "go.opentelemetry.io/proto/otlp/logs/v1"
	"k8s.io/klog/v2"

	"heliostat.dev/heliostat/internal/addon"
)

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
		ctx, _ := report.Begin(t.Context(), "ml", "llm", noon)
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
