package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
)

// recordsQueued limits the log records, of about one kilobyte each, that wait for the collector. When the queue is
// full, each new record replaces the oldest. OTEL_BLRP_MAX_QUEUE_SIZE overrides the limit.
const recordsQueued = 512

// exportLogs sets t.Log. It is config.Log, with an additional handler that exports over OTLP if the environment
// requests that.
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

// exportHandler returns a handler that exports the records that local writes. An exported record has fields for the IDs
// and the flags of the span.
func exportHandler(provider *sdklog.LoggerProvider, local slog.Handler) slog.Handler {
	bridge := otelslog.NewHandler(scope, otelslog.WithLoggerProvider(provider))
	return leveled{traced{Handler: bridge, native: true}, local}
}

// leveled passes only the records with levels that another handler writes.
type leveled struct {
	slog.Handler
	like slog.Handler
}

// Enabled reports whether both handlers accept records with this level.
func (l leveled) Enabled(ctx context.Context, level slog.Level) bool {
	return l.like.Enabled(ctx, level) && l.Handler.Enabled(ctx, level)
}

// WithAttrs returns the handler with these attributes.
func (l leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveled{l.Handler.WithAttrs(attrs), l.like}
}

// WithGroup returns the handler with this group.
func (l leveled) WithGroup(name string) slog.Handler {
	return leveled{l.Handler.WithGroup(name), l.like}
}
