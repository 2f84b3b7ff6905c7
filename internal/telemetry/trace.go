package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Tracer makes one span for each cycle that is worth telling. Without a collector it makes none, at no cost.
type Tracer struct {
	tracer   trace.Tracer
	shutdown func(context.Context) error
}

// queued bounds the spans that wait for the collector, of some kilobytes each; further ones are dropped.
// OTEL_BSP_MAX_QUEUE_SIZE overrides it.
const queued = 512

// newTracer exports over OTLP where the environment asks for that; OTEL_TRACES_SAMPLER chooses what.
func newTracer(ctx context.Context, config Config, resources *resource.Resource, health *health) (*Tracer, error) {
	exporter, err := spanExporter(ctx, config.Getenv)
	if err != nil {
		return nil, err
	}
	if exporter == nil {
		return &Tracer{tracer: noop.NewTracerProvider().Tracer(scope), shutdown: func(context.Context) error { return nil }}, nil
	}
	var options []sdktrace.BatchSpanProcessorOption
	if config.Getenv("OTEL_BSP_MAX_QUEUE_SIZE") == "" {
		options = append(options, sdktrace.WithMaxQueueSize(queued), sdktrace.WithMaxExportBatchSize(queued))
	}
	return tracerTo(sdktrace.WithBatcher(watchedSpans{exporter, health}, options...), sdktrace.WithResource(resources)), nil
}

func tracerTo(options ...sdktrace.TracerProviderOption) *Tracer {
	provider := sdktrace.NewTracerProvider(options...)
	return &Tracer{tracer: provider.Tracer(scope), shutdown: provider.Shutdown}
}

// Span is a cycle that has begun. One that is never told is no trace at all: it is dropped with the last reference to it.
type Span struct {
	tracer trace.Tracer
	span   trace.Span
	begun  context.Context
}

// Begin starts the span of one cycle on a RayCluster. Log records written with the context carry its ids.
func (t *Tracer) Begin(ctx context.Context, namespace, cluster string, at time.Time) (context.Context, Span) {
	ctx, span := t.tracer.Start(ctx, "cycle", trace.WithTimestamp(at))
	if span.IsRecording() {
		span.SetAttributes(attribute.String("k8s.namespace.name", namespace), attribute.String("ray.cluster", cluster))
	}
	return ctx, Span{tracer: t.tracer, span: span, begun: ctx}
}

// Told is what a span tells of its cycle.
type Told struct {
	At time.Time
	// Observed, Planned and Applied are how long its three parts took, in this order.
	Observed, Planned, Applied time.Duration
	// Mode is what may be done with the cluster. Actions are kind-result codes, Reasons the codes of why.
	Mode             string
	Actions, Reasons []string
	// Err says what failed, or is empty.
	Err string
}

// End exports the span, with one child for each part of the cycle.
func (s Span) End(t Told) {
	if !s.span.IsRecording() {
		return
	}
	at := t.At
	for _, part := range []struct {
		name string
		took time.Duration
	}{{"observe", t.Observed}, {"plan", t.Planned}, {"apply", t.Applied}} {
		_, child := s.tracer.Start(s.begun, part.name, trace.WithTimestamp(at))
		at = at.Add(part.took)
		child.End(trace.WithTimestamp(at))
	}
	s.span.SetAttributes(attribute.String("heliostat.mode", t.Mode),
		attribute.StringSlice("heliostat.actions", t.Actions), attribute.StringSlice("heliostat.reasons", t.Reasons))
	if t.Err != "" {
		s.span.SetStatus(codes.Error, t.Err)
	}
	s.span.End(trace.WithTimestamp(at))
}
