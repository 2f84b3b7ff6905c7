package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
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
