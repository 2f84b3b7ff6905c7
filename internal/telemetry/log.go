package telemetry

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// NewLogger returns a logger that writes to w in the given format (text or json) and from the given level (debug, info,
// warn or error). Records with the context of a span contain its trace_id and span_id.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("reading log level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: threshold}
	switch format {
	case "text":
		return slog.New(traced{slog.NewTextHandler(w, options)}), nil
	case "json":
		return slog.New(traced{slog.NewJSONHandler(w, options)}), nil
	}
	return nil, fmt.Errorf("reading log format %q: want text or json", format)
}

// traced adds the IDs of the current span to a record.
type traced struct{ slog.Handler }

// Handle adds the attributes to the record and passes it to the next handler.
func (t traced) Handle(ctx context.Context, record slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		record = record.Clone()
		record.AddAttrs(slog.String("trace_id", span.TraceID().String()),
			slog.String("span_id", span.SpanID().String()))
	}
	return t.Handler.Handle(ctx, record)
}

// WithAttrs returns the handler with these attributes.
func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{t.Handler.WithAttrs(attrs)} }

// WithGroup returns the handler with this group.
func (t traced) WithGroup(name string) slog.Handler { return traced{t.Handler.WithGroup(name)} }

// loggerKey is the attribute that names the library that wrote a log line.
const loggerKey = "logger"

// AdoptLibraries makes libraries with global loggers write to log, with its format and its minimum level: client-go
// (klog), and users of the package log of the standard library. The attribute logger names the library. The globals
// have no lock, so only the program calls AdoptLibraries, before anything else runs.
func AdoptLibraries(log *slog.Logger) {
	klog.SetSlogLogger(log.With(loggerKey, "klog"))
	slog.SetDefault(log.With(loggerKey, "log")) // the package log now writes to this logger
}

// AdoptGRPC makes gRPC write its errors to the package log. Call it once, after AdoptLibraries and before the first
// connection. gRPC logs failed connections as warnings; callers get them as the error of their call.
func AdoptGRPC() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, log.Writer()))
}
