package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The supported OTLP protocols, as in OTEL_EXPORTER_OTLP_PROTOCOL. HTTP is OpenTelemetry's default.
const (
	overGRPC = "grpc"
	overHTTP = "http/protobuf"
)

// exportOver returns the protocol for the export of a signal (TRACES or METRICS), or "" if it is not exported.
// The exporters read all other settings from the environment: endpoint, headers, certificates, timeouts.
func exportOver(signal string, getenv func(string) string) (string, error) {
	set := func(suffix string) string {
		return cmp.Or(getenv("OTEL_EXPORTER_OTLP_"+signal+"_"+suffix), getenv("OTEL_EXPORTER_OTLP_"+suffix))
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || set("ENDPOINT") == "" {
		return "", nil
	}
	switch exporter := getenv("OTEL_" + signal + "_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return "", nil
	default:
		return "", fmt.Errorf("reading OTEL_%s_EXPORTER: %q is not known, want otlp or none", signal, exporter)
	}
	switch protocol := cmp.Or(set("PROTOCOL"), overHTTP); protocol {
	case overGRPC, overHTTP:
		return protocol, nil
	default:
		return "", fmt.Errorf("reading OTEL_EXPORTER_OTLP_PROTOCOL: %q is not supported, want %s or %s", protocol,
			overGRPC, overHTTP)
	}
}

// exporterOf returns the exporter of a signal for the protocol that the environment selects; nil if it is not exported.
func exporterOf[E any](
	ctx context.Context, getenv func(string) string, signal string, grpc, http func(context.Context) (E, error),
) (none E, err error) {
	protocol, err := exportOver(strings.ToUpper(signal), getenv)
	if protocol == "" {
		return none, err
	}
	create := http
	if protocol == overGRPC {
		create = grpc
	}
	exporter, err := create(ctx)
	if err != nil {
		return none, fmt.Errorf("setting up the export of %s: %w", signal, err)
	}
	return exporter, nil
}

// metricExporter and spanExporter return nil if their signal is not exported.
func metricExporter(ctx context.Context, getenv func(string) string) (sdkmetric.Exporter, error) {
	return exporterOf(ctx, getenv, "metrics",
		func(ctx context.Context) (sdkmetric.Exporter, error) { return otlpmetricgrpc.New(ctx) },
		func(ctx context.Context) (sdkmetric.Exporter, error) { return otlpmetrichttp.New(ctx) })
}

func spanExporter(ctx context.Context, getenv func(string) string) (sdktrace.SpanExporter, error) {
	return exporterOf(ctx, getenv, "traces",
		func(ctx context.Context) (sdktrace.SpanExporter, error) { return otlptracegrpc.New(ctx) },
		func(ctx context.Context) (sdktrace.SpanExporter, error) { return otlptracehttp.New(ctx) })
}

// health logs once when exports start to fail, logs once when they work again, and counts the failures.
type health struct {
	log *slog.Logger

	mu      sync.Mutex // protects the fields below
	metrics *Metrics
	failing map[string]bool
	// last is the latest error of the SDK.
	last string
}

func newHealth(log *slog.Logger) *health { return &health{log: log, failing: map[string]bool{}} }

// count starts to count failures.
func (h *health) count(metrics *Metrics) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.metrics = metrics
}

// exported records the result of an export.
func (h *health) exported(signal string, err error) {
	h.mu.Lock()
	before := h.failing[signal]
	h.failing[signal] = err != nil
	metrics := h.metrics
	h.mu.Unlock()
	if err != nil && metrics != nil {
		metrics.count("heliostat_export_failures_total", "signal", signal)
	}
	switch {
	case err != nil && !before:
		h.log.Warn("the OTLP collector does not accept exports; they are dropped, and this is logged once", "signal",
			signal, "err", err)
	case err == nil && before:
		h.log.Info("the OTLP collector accepts exports again", "signal", signal)
	}
}

// complaint logs an error of the SDK if it differs from the previous one.
func (h *health) complaint(err error) {
	h.mu.Lock()
	again := h.last == err.Error()
	h.last = err.Error()
	h.mu.Unlock()
	if !again {
		h.log.Warn("telemetry", "err", err)
	}
}

// watchedSpans and watchedMetrics export, and report the result to health. They return no error, because
// the SDK would log it every time.
type watchedSpans struct {
	sdktrace.SpanExporter
	health *health
}

func (w watchedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	w.health.exported("traces", w.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

type watchedMetrics struct {
	sdkmetric.Exporter
	health *health
}

func (w watchedMetrics) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	w.health.exported("metrics", w.Exporter.Export(ctx, metrics))
	return nil
}
