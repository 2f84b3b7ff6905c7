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

// Tracer makes one trace for each scale-up, from the demand or the call that wants it to the life of the last Ray node it
// asked for, and one span for each cycle that is worth telling. Without a collector it makes none; the ids that tie what
// one cycle logs together are there all the same.
type Tracer struct {
	tracer   trace.Tracer
	exports  bool
	shutdown func(context.Context) error

	mu       sync.Mutex // guards what follows
	clusters map[string]*following
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
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithIDGenerator(idSource{}))...)
	t := &Tracer{tracer: provider.Tracer(scope), exports: true, clusters: map[string]*following{}}
	t.shutdown = func(ctx context.Context) error {
		t.interrupt(time.Now())
		return provider.Shutdown(ctx)
	}
	return t
}

// Span is a cycle that has begun. One that is never told is no trace at all.
type Span struct {
	tracer             *Tracer
	namespace, cluster string
	at                 time.Time
	kept               Kept
	own                ids
	// root names the scale-up that this cycle may begin, below call where a call may have caused it.
	root ids
	call trace.SpanContext
}

// Exports reports whether there is a collector: else what RayClusters keep of traces need not be read.
func (t *Tracer) Exports() bool { return t.exports }

type current struct{}

// Begin starts one cycle on a RayCluster, of which kept is what its annotations keep. Log records written with the context
// name the RayCluster and carry the ids of the cycle's span, whether or not that will be told.
func (t *Tracer) Begin(ctx context.Context, namespace, cluster string, at time.Time, kept Kept) (context.Context, *Span) {
	s := &Span{tracer: t, namespace: namespace, cluster: cluster, at: at, kept: kept, own: newIDs()}
	if t.exports {
		t.place(s)
	}
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: s.own.trace, SpanID: s.own.span}))
	return context.WithValue(ctx, current{}, s), s
}

// place puts a cycle into the trace of the scale-up that is wanted already, else into that of the call which asks for one.
func (t *Tracer) place(s *Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.clusters[s.key()]
	if f != nil && f.wanted != nil {
		s.own.trace = f.wanted.context().TraceID()
		return
	}
	if s.call = s.kept.fresh(s.at); s.call.IsValid() && (f == nil || f.call != s.kept.Call) {
		s.own.trace = s.call.TraceID()
	} else {
		s.call = trace.SpanContext{}
	}
	s.root = ids{trace: s.own.trace, span: newSpanID()}
}

// callHolds is for how long after a call growth counts as what it asked for.
const callHolds = 10 * time.Minute

// fresh is the span of a call that was made lately and that no scale-up has been patched for yet.
func (k Kept) fresh(now time.Time) trace.SpanContext {
	if k.Call == "" || now.Sub(k.CalledAt) > callHolds {
		return trace.SpanContext{}
	}
	if root, patched := scaleUpOf(k.ScaleUp); root.IsValid() && patched.After(k.CalledAt) {
		return trace.SpanContext{}
	}
	return spanOf(k.Call)
}

func (s *Span) key() string { return s.namespace + "/" + s.cluster }

// Told is what a span tells of its cycle.
type Told struct {
	Cycle Cycle
	// Worth: the cycle itself is told, since it did something or failed. Else only what became of scale-ups is.
	Worth bool
	// At is when it began. Observed, Planned and Applied are how long its three parts took, in this order.
	At                         time.Time
	Observed, Planned, Applied time.Duration
	// GrowthWanted is since when growth has been wanted that this cycle wants, patched or not; zero where it wants none.
	GrowthWanted time.Time
	// Cooling says why groups take no launches at present, by name.
	Cooling map[string]string
	// Mode is what may be done with the cluster. Actions are kind-result codes, Reasons the codes of why.
	Mode             string
	Actions, Reasons []string
	// Err says what failed, or is empty.
	Err string
}

// Follows reports whether a cycle has to be told although nothing happened in it: a scale-up is on its way, a call may have
// asked for one, or this process has not looked at the RayCluster before.
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

// End tells how the cycle went.
func (s *Span) End(told Told) {
	t := s.tracer
	if !t.exports {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.follow(s)
	f.call = s.kept.Call
	up := f.want(s, told)
	if told.Worth {
		s.tellCycle(up, told)
	}
	f.observe(told)
}

// tellCycle exports the cycle, with one child for each of its parts.
func (s *Span) tellCycle(up *scaleUp, told Told) {
	parent := trace.SpanContext{}
	if up != nil {
		parent = up.context()
	}
	below := choosing(trace.ContextWithSpanContext(context.Background(), parent), s.own)
	_, span := s.tracer.tracer.Start(below, "cycle", trace.WithTimestamp(told.At))
	// The ids that were chosen are this span's alone.
	begun := trace.ContextWithSpan(context.Background(), span)
	at := told.At
	for _, part := range []struct {
		name string
		took time.Duration
	}{{"observe", told.Observed}, {"plan", told.Planned}, {"apply", told.Applied}} {
		_, child := s.tracer.tracer.Start(begun, part.name, trace.WithTimestamp(at))
		at = at.Add(part.took)
		child.End(trace.WithTimestamp(at))
	}
	span.SetAttributes(s.attributes()...)
	span.SetAttributes(attribute.String("heliostat.mode", told.Mode),
		attribute.StringSlice("heliostat.actions", told.Actions), attribute.StringSlice("heliostat.reasons", told.Reasons))
	if told.Err != "" {
		span.SetStatus(codes.Error, told.Err)
	}
	span.End(trace.WithTimestamp(at))
}

// attributes name the RayCluster.
func (s *Span) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("k8s.namespace.name", s.namespace), attribute.String("ray.cluster", s.cluster)}
}

// Called is a span of a call that asks for resources, within the caller's own trace where the context has one. What is
// stored with the context keeps it as Traceparent writes it. The function ends the span.
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
