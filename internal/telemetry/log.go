package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns a logger that writes to w in the given format, text or json, from the given level on: debug, info,
// warn or error. Records written with the context of a span carry its trace_id and span_id.
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

// traced adds the ids of the span that a record was written in.
type traced struct{ slog.Handler }

func (t traced) Handle(ctx context.Context, record slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		record = record.Clone()
		record.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return t.Handler.Handle(ctx, record)
}

func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{t.Handler.WithAttrs(attrs)} }

func (t traced) WithGroup(name string) slog.Handler { return traced{t.Handler.WithGroup(name)} }
