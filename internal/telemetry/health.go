package telemetry

import (
	"context"
	"log/slog"
	"sync"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// health logs once when exports start to fail, logs once when they work again, and counts the failures. Its logger must
// not export; otherwise, a failed export of logs would cause another one.
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
		metrics.exportFailures.Add(context.Background(), 1, metrics.labelled("signal", signal))
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

// watchedSpans, watchedMetrics and watchedLogs export, and report the result to health. They return no error, because
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

type watchedLogs struct {
	sdklog.Exporter
	health *health
}

func (w watchedLogs) Export(ctx context.Context, records []sdklog.Record) error {
	w.health.exported("logs", w.Exporter.Export(ctx, records))
	return nil
}
