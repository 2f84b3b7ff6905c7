package telemetry

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"heliostat.dev/heliostat/internal/addon"
)

// Tracer exports one trace for each cycle that changed something or failed, with a child for each part of the cycle.
// Without a collector it exports nothing, but the IDs that connect the log lines of a cycle still exist.
type Tracer struct {
	tracer   trace.Tracer
	shutdown func(context.Context) error
}

// mostTraced limits the actions that a span has, and the pods of each.
const mostTraced = 32

// newTracer returns a tracer that exports over OTLP if the environment requests that. OTEL_TRACES_SAMPLER selects the
// traces.
func newTracer(ctx context.Context, getenv func(string) string, resources *resource.Resource) (*Tracer, error) {
	exporter, err := spanExporter(ctx, getenv)
	if err != nil {
		return nil, err
	}
	if exporter == nil {
		return tracerTo(sdktrace.WithSampler(sdktrace.NeverSample())), nil
	}
	return tracerTo(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resources)), nil
}

func tracerTo(options ...sdktrace.TracerProviderOption) *Tracer {
	provider := sdktrace.NewTracerProvider(options...)
	return &Tracer{tracer: provider.Tracer(scope), shutdown: provider.Shutdown}
}

// Begin starts the span of one cycle on a RayCluster. Log records with the returned context contain its IDs, even if
// the span is not exported. end exports it with the decision of the cycle. A span that does not end leaves no data.
func (t *Tracer) Begin(
	ctx context.Context, namespace, cluster string,
) (traced context.Context, end func(*addon.Decision)) {
	begun := time.Now()
	traced, span := t.tracer.Start(ctx, "cycle", trace.WithTimestamp(begun), trace.WithAttributes(
		attribute.String("k8s.namespace.name", namespace), attribute.String("ray.cluster", cluster)))
	return traced, func(d *addon.Decision) {
		if span.IsRecording() {
			t.end(traced, span, begun, d)
		}
	}
}

// end adds what a decision shows to the span of its cycle, and ends the span. If the RayCluster could not be read, the
// decision is that of an earlier cycle, and this one, since begun, only observed.
func (t *Tracer) end(ctx context.Context, span trace.Span, begun time.Time, d *addon.Decision) {
	at, observed, planned, actions := d.At, d.Observed, d.Planned, d.Actions
	applied := max(0, d.Took-observed-planned)
	if d.ObserveFailed {
		at, observed, planned, applied, actions = begun, time.Since(begun), 0, 0, nil
	}
	for _, part := range []struct {
		name string
		took time.Duration
	}{{"observe", observed}, {"plan", planned}, {"apply", applied}} {
		_, child := t.tracer.Start(ctx, part.name, trace.WithTimestamp(at))
		at = at.Add(part.took)
		child.End(trace.WithTimestamp(at))
	}
	var done, reasons []string
	for i, a := range actions {
		done, reasons = append(done, a.Kind+"-"+a.Result), append(reasons, reasonOf(d, a))
		if i < mostTraced {
			span.AddEvent(a.Name(), trace.WithTimestamp(a.At), trace.WithAttributes(
				attribute.String("ray.group", a.Group), attribute.String("heliostat.message", a.Message),
				attribute.StringSlice("heliostat.pods", a.Pods[:min(len(a.Pods), mostTraced)])))
		}
	}
	slices.Sort(reasons)
	span.SetAttributes(attribute.String("heliostat.mode", string(d.Mode)),
		attribute.StringSlice("heliostat.actions", done),
		attribute.StringSlice("heliostat.reasons", slices.Compact(reasons)))
	switch {
	case d.Err != "":
		span.SetStatus(codes.Error, d.Err)
	case rayFailed(d):
		span.SetStatus(codes.Error, d.RayErr)
	}
	span.End(trace.WithTimestamp(at))
}
