package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Tracer exports one trace for each scale-up, from the demand or the call that wants it until the last Ray node that
// it asked for lives, and one span for each cycle that changed something or failed. Without a collector it exports
// none; the ids that connect the log lines of one cycle exist all the same.
type Tracer struct {
	tracer   trace.Tracer
	exports  bool
	shutdown func(context.Context) error

	mu       sync.Mutex // guards what follows
	clusters map[string]*clusterTraces
}

// queued bounds the spans that wait for the collector, of some kilobytes each; further ones are dropped.
// OTEL_BSP_MAX_QUEUE_SIZE overrides it.
const queued = 512

// newTracer exports over OTLP if the environment asks for that; OTEL_TRACES_SAMPLER selects what.
func newTracer(ctx context.Context, config Config, resources *resource.Resource, health *health) (*Tracer, error) {
	exporter, err := spanExporter(ctx, config.Getenv)
	if err != nil {
		return nil, err
	}
	if exporter == nil {
		return &Tracer{
			tracer:   noop.NewTracerProvider().Tracer(scope),
			shutdown: func(context.Context) error { return nil },
		}, nil
	}
	var options []sdktrace.BatchSpanProcessorOption
	if config.Getenv("OTEL_BSP_MAX_QUEUE_SIZE") == "" {
		options = append(options, sdktrace.WithMaxQueueSize(queued), sdktrace.WithMaxExportBatchSize(queued))
	}
	return tracerTo(sdktrace.WithBatcher(watchedSpans{exporter, health}, options...),
		sdktrace.WithResource(resources)), nil
}

func tracerTo(options ...sdktrace.TracerProviderOption) *Tracer {
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithIDGenerator(idSource{}))...)
	t := &Tracer{tracer: provider.Tracer(scope), exports: true, clusters: map[string]*clusterTraces{}}
	t.shutdown = func(ctx context.Context) error {
		t.interrupt(time.Now())
		return provider.Shutdown(ctx)
	}
	return t
}

// Span is a cycle that has begun. If it is not exported there is no trace of it.
type Span struct {
	tracer             *Tracer
	namespace, cluster string
	at                 time.Time
	annotations        Annotations
	own                ids
	// root identifies the scale-up that this cycle may begin, below call if a call may have caused it.
	root ids
	call trace.SpanContext
}

// Exports reports whether there is a collector: if not, the annotations of RayClusters need not be read.
func (t *Tracer) Exports() bool { return t.exports }

type spanKey struct{}

// Begin starts one cycle on a RayCluster with these annotations. Log records written with the context name the
// RayCluster and carry the ids of the cycle's span, whether it will be exported or not.
func (t *Tracer) Begin(
	ctx context.Context, namespace, cluster string, at time.Time, annotations Annotations,
) (context.Context, *Span) {
	s := &Span{tracer: t, namespace: namespace, cluster: cluster, at: at, annotations: annotations, own: newIDs()}
	if t.exports {
		t.place(s)
	}
	ctx = trace.ContextWithSpanContext(ctx,
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: s.own.trace, SpanID: s.own.span}))
	return context.WithValue(ctx, spanKey{}, s), s
}

// place puts a cycle into the trace of the scale-up that is already wanted, or into that of the call that asks for
// one.
func (t *Tracer) place(s *Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.clusters[s.key()]
	if f != nil && f.wanted != nil {
		s.own.trace = f.wanted.context().TraceID()
		return
	}
	if s.call = s.annotations.fresh(s.at); s.call.IsValid() && (f == nil || f.call != s.annotations.Call) {
		s.own.trace = s.call.TraceID()
	} else {
		s.call = trace.SpanContext{}
	}
	s.root = ids{trace: s.own.trace, span: newSpanID()}
}

// callHolds is how long after a call growth counts as requested by it.
const callHolds = 10 * time.Minute

// fresh returns the span of a recent call that no scale-up has been patched for yet.
func (k Annotations) fresh(now time.Time) trace.SpanContext {
	if k.Call == "" || now.Sub(k.CalledAt) > callHolds {
		return trace.SpanContext{}
	}
	if root, patched := parseScaleUp(k.ScaleUp); root.IsValid() && patched.After(k.CalledAt) {
		return trace.SpanContext{}
	}
	return spanOf(k.Call)
}

func (s *Span) key() string { return s.namespace + "/" + s.cluster }

// CycleReport is what a span exports about its cycle.
type CycleReport struct {
	Cycle Cycle
	// Export: export the cycle itself, since it did something or failed. Otherwise only scale-ups are followed.
	Export bool
	// At is when it began. Observed, Planned and Applied are the durations of its three parts, in this order.
	At                         time.Time
	Observed, Planned, Applied time.Duration
	// GrowthWanted is since when this cycle's growth is wanted, patched or not; zero if it wants none.
	GrowthWanted time.Time
	// Cooling is why groups get no launches at present, by name.
	Cooling map[string]string
	// Mode is what may be done with the cluster. Actions are kind-result codes, Reasons the codes of their reasons.
	Mode             string
	Actions, Reasons []string
	// Err is the error of the cycle, or empty.
	Err string
}

// Follows reports whether a cycle must be reported although nothing happened in it: a scale-up is on its way, a call
// may have asked for one, or this process has not seen the RayCluster before.
func (s *Span) Follows() bool {
	t := s.tracer
	if !t.exports {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.clusters[s.key()]
	return f == nil || f.wanted != nil || len(f.open) > 0 || s.call.IsValid()
}

// End reports the result of the cycle.
func (s *Span) End(report CycleReport) {
	t := s.tracer
	if !t.exports {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.follow(s)
	f.call = s.annotations.Call
	up := f.track(s, report)
	if report.Export {
		s.exportCycle(up, report)
	}
	f.observe(report)
}

// exportCycle exports the cycle, with one child for each of its parts.
func (s *Span) exportCycle(up *scaleUp, report CycleReport) {
	parent := trace.SpanContext{}
	if up != nil {
		parent = up.context()
	}
	below := withIDs(trace.ContextWithSpanContext(context.Background(), parent), s.own)
	_, span := s.tracer.tracer.Start(below, "cycle", trace.WithTimestamp(report.At))
	// The ids are those of this span alone.
	begun := trace.ContextWithSpan(context.Background(), span)
	at := report.At
	for _, part := range []struct {
		name string
		took time.Duration
	}{{"observe", report.Observed}, {"plan", report.Planned}, {"apply", report.Applied}} {
		_, child := s.tracer.tracer.Start(begun, part.name, trace.WithTimestamp(at))
		at = at.Add(part.took)
		child.End(trace.WithTimestamp(at))
	}
	span.SetAttributes(s.attributes()...)
	span.SetAttributes(attribute.String("heliostat.mode", report.Mode),
		attribute.StringSlice("heliostat.actions", report.Actions),
		attribute.StringSlice("heliostat.reasons", report.Reasons))
	if report.Err != "" {
		span.SetStatus(codes.Error, report.Err)
	}
	span.End(trace.WithTimestamp(at))
}

// attributes name the RayCluster.
func (s *Span) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("k8s.namespace.name", s.namespace),
		attribute.String("ray.cluster", s.cluster),
	}
}

// Called starts the span of a call that asks for resources, within the caller's own trace if the context has one.
// Requests stored with the returned context keep the span as Traceparent returns it. The returned function ends the
// span.
func (t *Tracer) Called(ctx context.Context, name, namespace, cluster string) (context.Context, func(error)) {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("k8s.namespace.name", namespace), attribute.String("ray.cluster", cluster)))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
