package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns a logger that writes to w in the given format, text or json, from the given level on: debug, info,
// warn or error. Records written with the context of a span have its trace_id and span_id, those of a cycle its
// cluster too.
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

// traced adds the RayCluster of the cycle to a record and, unless the handler reads them from the context itself, the
// ids of the current span.
type traced struct {
	slog.Handler
	// named: the logger itself names a RayCluster.
	named bool
	// native: the format of the handler has fields for the ids of a span.
	native bool
}

// Handle adds to the record and passes it on.
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

// names reports whether a record has an attribute of that name.
func names(record slog.Record, key string) (found bool) {
	record.Attrs(func(a slog.Attr) bool {
		found = a.Key == key
		return !found
	})
	return found
}

// WithAttrs returns the handler with attributes of its own.
func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	named := t.named || slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == clusterKey })
	return traced{t.Handler.WithAttrs(attrs), named, t.native}
}

// WithGroup returns the handler within a group.
func (t traced) WithGroup(name string) slog.Handler {
	return traced{t.Handler.WithGroup(name), t.named, t.native}
}
