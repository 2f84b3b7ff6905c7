package telemetry

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Annotations are the parts of traces that a RayCluster's annotations store, so that they survive the process.
type Annotations struct {
	// Call is the W3C traceparent of the call that set resource-requests, CalledAt when that was; empty if none is
	// stored.
	Call     string
	CalledAt time.Time
	// ScaleUp is the last scale-up that was patched, as ScaleUpAnnotation returned it.
	ScaleUp string
}

const traceparent = "traceparent"

// Traceparent returns the span of a context as W3C Trace Context; "" if its trace is not sampled.
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

// spanOf parses a traceparent; an invalid one is no span.
func spanOf(text string) trace.SpanContext {
	carrier := propagation.MapCarrier{traceparent: text}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// formatScaleUp returns the root span of a scale-up and when it was patched: `<traceparent> <RFC 3339>`.
func formatScaleUp(root trace.SpanContext, at time.Time) string {
	return traceparentOf(root) + " " + at.UTC().Format(time.RFC3339Nano)
}

// parseScaleUp parses the text of formatScaleUp; the span is invalid if the text is.
func parseScaleUp(text string) (root trace.SpanContext, at time.Time) {
	parent, moment, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339Nano, moment)
	if err != nil {
		return trace.SpanContext{}, time.Time{}
	}
	return spanOf(parent), at
}
