package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
)

// recordsQueued bounds the log records that wait for the collector, of about a kilobyte each; when the queue is full,
// each new record replaces the oldest. OTEL_BLRP_MAX_QUEUE_SIZE overrides it.
const recordsQueued = 512

// exportLogs sets t.Log: config.Log alone, or config.Log and a handler that exports over OTLP if the environment asks
// for that.
func (t *Telemetry) exportLogs(ctx context.Context, config Config, resources *resource.Resource, health *health) error {
	t.Log = config.Log
	exporter, err := logExporter(ctx, config.Getenv)
	if exporter == nil {
		return err
	}
	var options []sdklog.BatchProcessorOption
	if config.Getenv("OTEL_BLRP_MAX_QUEUE_SIZE") == "" {
		options = append(options, sdklog.WithMaxQueueSize(recordsQueued), sdklog.WithExportMaxBatchSize(recordsQueued))
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(resources),
		sdklog.WithProcessor(sdklog.NewBatchProcessor(watchedLogs{exporter, health}, options...)))
	t.shutdown = append(t.shutdown, provider.Shutdown)
	t.Log = slog.New(slog.NewMultiHandler(config.Log.Handler(), exportHandler(provider, config.Log.Handler())))
	return nil
}

// exportHandler returns a handler that exports the records that local writes. The ids of the span and its flags are
// fields of an exported record.
func exportHandler(provider *sdklog.LoggerProvider, local slog.Handler) slog.Handler {
	bridge := otelslog.NewHandler(scope, otelslog.WithLoggerProvider(provider))
	return leveled{traced{Handler: bridge, native: true}, local}
}

// leveled passes on the records of the levels that another handler writes.
type leveled struct {
	slog.Handler
	like slog.Handler
}

// Enabled reports whether both handlers accept records of the level.
func (l leveled) Enabled(ctx context.Context, level slog.Level) bool {
	return l.like.Enabled(ctx, level) && l.Handler.Enabled(ctx, level)
}

// WithAttrs returns the handler with attributes of its own.
func (l leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveled{l.Handler.WithAttrs(attrs), l.like}
}

// WithGroup returns the handler within a group.
func (l leveled) WithGroup(name string) slog.Handler {
	return leveled{l.Handler.WithGroup(name), l.like}
}
