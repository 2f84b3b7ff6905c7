package telemetry

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Kept is what a RayCluster's annotations keep of traces, so that they survive the process.
type Kept struct {
	// Call is the W3C traceparent of the call that asked for what stands in resource-requests, CalledAt when that was; empty
	// where none is kept.
	Call     string
	CalledAt time.Time
	// ScaleUp is the last scale-up that was patched, as Growing wrote it.
	ScaleUp string
}

const traceparent = "traceparent"

// Traceparent writes the span that a context stands in as W3C Trace Context does; "" where its trace is not sampled, which
// leads nowhere.
func Traceparent(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsSampled() {
		return ""
	}
	return traceparentOf(span)
}

func traceparentOf(span trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), span), carrier)
	return carrier[traceparent]
}

// spanOf reads a traceparent; what is none is no span.
func spanOf(text string) trace.SpanContext {
	carrier := propagation.MapCarrier{traceparent: text}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// keepScaleUp writes a scale-up's root and when it was patched: `<traceparent> <RFC 3339>`.
func keepScaleUp(root trace.SpanContext, at time.Time) string {
	return traceparentOf(root) + " " + at.UTC().Format(time.RFC3339Nano)
}

// scaleUpOf reads what keepScaleUp wrote; an invalid span where it is something else.
func scaleUpOf(text string) (root trace.SpanContext, at time.Time) {
	parent, moment, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339Nano, moment)
	if err != nil {
		return trace.SpanContext{}, time.Time{}
	}
	return spanOf(parent), at
}
