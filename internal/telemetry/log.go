package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// NewLogger returns a logger that writes to w in the given format (text or json) and from the given level (debug, info,
// warn or error). Records with the context of a span contain its trace_id and span_id. Records of a cycle also contain
// its cluster.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("reading log level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: threshold}
	switch format {
	case "text":
		return slog.New(traced{Handler: slog.NewTextHandler(w, options)}), nil
	case "json":
		return slog.New(traced{Handler: slog.NewJSONHandler(w, options)}), nil
	}
	return nil, fmt.Errorf("reading log format %q: want text or json", format)
}

// traced adds the RayCluster of the cycle to a record. It also adds the IDs of the current span, unless the handler
// reads them from the context.
type traced struct {
	slog.Handler
	// named is true if the logger already names a RayCluster.
	named bool
	// native is true if the format of the handler has fields for the IDs of a span.
	native bool
}

// Handle adds the attributes to the record and passes it to the next handler.
func (t traced) Handle(ctx context.Context, record slog.Record) error {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return t.Handler.Handle(ctx, record)
	}
	record = record.Clone()
	if !t.native {
		record.AddAttrs(slog.String("trace_id", span.TraceID().String()),
			slog.String("span_id", span.SpanID().String()))
	}
	if s, cycle := ctx.Value(spanKey{}).(*Span); cycle && !t.named && !names(record, clusterKey) {
		record.AddAttrs(slog.String(clusterKey, s.key()))
	}
	return t.Handler.Handle(ctx, record)
}

// clusterKey is the attribute that names the RayCluster, as namespace/name.
const clusterKey = "cluster"

// names reports whether a record has an attribute with this name.
func names(record slog.Record, key string) (found bool) {
	record.Attrs(func(a slog.Attr) bool {
		found = a.Key == key
		return !found
	})
	return found
}

// WithAttrs returns the handler with these attributes.
func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	named := t.named || slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == clusterKey })
	return traced{t.Handler.WithAttrs(attrs), named, t.native}
}

// WithGroup returns the handler with this group.
func (t traced) WithGroup(name string) slog.Handler {
	return traced{t.Handler.WithGroup(name), t.named, t.native}
}

// loggerKey is the attribute that names the library that wrote a log line.
const loggerKey = "logger"

// AdoptLibraries makes libraries with global loggers write to log, with its format and its minimum level: client-go
// (klog), and users of the package log of the standard library. The attribute logger names the library. The globals
// have no lock, so only the program calls AdoptLibraries, before anything else runs. A second call replaces the logger
// of the first.
func AdoptLibraries(log *slog.Logger) {
	klog.SetSlogLogger(log.With(loggerKey, "klog"))
	slog.SetDefault(log.With(loggerKey, "log")) // the package log now writes to this logger
}

// AdoptGRPC does the same for gRPC. Call it once, before the first connection. The exporters use gRPC too, so the
// logger must not export; otherwise, each failed export could log the content of the next one.
func AdoptGRPC(local *slog.Logger) {
	// gRPC logs failed connections as warnings; callers get them as the error of their call.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, grpcErrors{local.With(loggerKey, "grpc")}))
}

// grpcErrors receives the lines of gRPC's own log, for example `2026/11/22 10:00:00 ERROR: text`.
type grpcErrors struct{ log *slog.Logger }

// Write logs one line.
func (g grpcErrors) Write(line []byte) (int, error) {
	text := bytes.TrimSpace(line)
	if _, after, found := bytes.Cut(text, []byte(": ")); found {
		text = after
	}
	g.log.Error(string(text))
	return len(line), nil
}

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
