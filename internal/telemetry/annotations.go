package telemetry

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Annotations are the trace data in a RayCluster's annotations, which remain after the process ends.
type Annotations struct {
	// Call is the W3C traceparent of the call that set resource-requests, and CalledAt is its time. Call is empty if
	// none is stored.
	Call     string
	CalledAt time.Time
	// ScaleUp is the value that ScaleUpAnnotation returned for the last patched scale-up.
	ScaleUp string
}

const traceparent = "traceparent"

// Traceparent returns the span of a context as W3C Trace Context, or "" if its trace is not sampled.
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

// spanOf parses a traceparent. If the text is invalid, so is the returned span context.
func spanOf(text string) trace.SpanContext {
	carrier := propagation.MapCarrier{traceparent: text}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// formatScaleUp formats the root span of a scale-up and the time of its patch as `<traceparent> <RFC 3339>`.
func formatScaleUp(root trace.SpanContext, at time.Time) string {
	return traceparentOf(root) + " " + at.UTC().Format(time.RFC3339Nano)
}

// parseScaleUp parses the format of formatScaleUp. If the text is invalid, so is the returned span context.
func parseScaleUp(text string) (root trace.SpanContext, at time.Time) {
	parent, moment, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339Nano, moment)
	if err != nil {
		return trace.SpanContext{}, time.Time{}
	}
	return spanOf(parent), at
}
