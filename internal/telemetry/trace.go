package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"heliostat.dev/heliostat/internal/addon"
)

// Tracer exports one trace for each scale-up, from the demand or the call that wants it until its last Ray node is
// alive. It also exports one span for each cycle that changed something or failed. Without a collector it exports
// nothing, but the IDs that connect the log lines of a cycle still exist.
type Tracer struct {
	tracer   trace.Tracer
	exports  bool
	shutdown func(context.Context) error

	mu       sync.Mutex // protects the fields below
	clusters map[string]*clusterTraces
	// calls are the last calls that requested resources of each RayCluster, until a cycle has answered them.
	calls map[string]*call
}

// call is a traced call that requests resources. stored is when its request was stored; zero until then.
type call struct {
	span       trace.SpanContext
	at, stored time.Time
}

// queued limits the spans, of a few kilobytes each, that wait for the collector; further spans are dropped.
// OTEL_BSP_MAX_QUEUE_SIZE overrides the limit.
const queued = 512

// newTracer returns a tracer that exports over OTLP if the environment requests that. OTEL_TRACES_SAMPLER selects the
// traces.
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
	t := &Tracer{tracer: provider.Tracer(scope), exports: true, clusters: map[string]*clusterTraces{},
		calls: map[string]*call{}}
	t.shutdown = func(ctx context.Context) error {
		t.interrupt(time.Now())
		return provider.Shutdown(ctx)
	}
	return t
}

// Span is a cycle that has begun. A cycle that is not exported leaves no data.
type Span struct {
	tracer             *Tracer
	namespace, cluster string
	at                 time.Time
	own                ids
	// root identifies the scale-up that this cycle might start. It is a child of parent if a call might have caused it.
	root   ids
	parent trace.SpanContext
	// answers is the last call before this cycle, if no cycle has answered it.
	answers *call
}

type spanKey struct{}

// Begin starts one cycle on a RayCluster. Log records with the returned context contain the
// RayCluster and the IDs of the cycle's span, even if the span is not exported.
func (t *Tracer) Begin(
	ctx context.Context, namespace, cluster string, at time.Time,
) (context.Context, *Span) {
	s := &Span{tracer: t, namespace: namespace, cluster: cluster, at: at, own: newIDs()}
	if t.exports {
		t.place(s)
	}
	ctx = trace.ContextWithSpanContext(ctx,
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: s.own.trace, SpanID: s.own.span}))
	return context.WithValue(ctx, spanKey{}, s), s
}

// place adds a cycle to the trace of the scale-up that is already wanted, or to the trace of the call that requests
// one.
func (t *Tracer) place(s *Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.answers = t.calls[s.key()]
	if f := t.clusters[s.key()]; f != nil && f.wanted != nil {
		s.own.trace = f.wanted.context().TraceID()
		return
	}
	if c := s.answers; c != nil && s.at.Sub(c.at) <= callHolds {
		s.parent, s.own.trace = c.span, c.span.TraceID()
	}
	s.root = ids{trace: s.own.trace, span: newSpanID()}
}

// callHolds is the time after a call in which growth is attributed to the call.
const callHolds = 10 * time.Minute

func (s *Span) key() string { return s.namespace + "/" + s.cluster }

// CycleReport is what a span exports about its cycle.
type CycleReport struct {
	Cycle Cycle
	// Export is true if the cycle did something or failed, and is exported itself. Otherwise only scale-ups are
	// followed.
	Export bool
	// At is the start of the cycle. Observed, Waited, Planned and Applied are the durations of its parts, in this
	// order. Few cycles wait.
	At                                 time.Time
	Observed, Waited, Planned, Applied time.Duration
	// GrowthWanted is the time since which the growth of this cycle is wanted, patched or not; zero if there is none.
	GrowthWanted time.Time
	// Mode is the mode of the cluster. Actions are what the cycle did, and Reasons are the codes of their reasons.
	Mode    string
	Actions []addon.Action
	Reasons []string
	// Err is the error of the cycle, or empty.
	Err string
}

// Follows reports whether a cycle must be reported even if nothing happened in it: pods of a scale-up are pending, or a
// call might have requested a scale-up.
func (s *Span) Follows() bool {
	t := s.tracer
	if !t.exports {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.clusters[s.key()]
	return s.answers != nil || f != nil && (f.wanted != nil || len(f.open) > 0)
}

// End reports the result of the cycle.
func (s *Span) End(report CycleReport) {
	t := s.tracer
	if !t.exports {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.clusters[s.key()]
	if f == nil {
		f = &clusterTraces{}
		t.clusters[s.key()] = f
	}
	up := f.track(s, report)
	if c := s.answers; c != nil && c == t.calls[s.key()] && (up != nil || !c.stored.IsZero() && !c.stored.After(s.at)) {
		delete(t.calls, s.key())
	}
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
	// The context contains only the IDs of this span.
	begun := trace.ContextWithSpan(context.Background(), span)
	at := report.At
	for _, part := range []struct {
		name string
		took time.Duration
	}{
		{"observe", report.Observed}, {"wait", report.Waited}, {"plan", report.Planned}, {"apply", report.Applied},
	} {
		if part.name == "wait" && part.took == 0 {
			continue
		}
		_, child := s.tracer.tracer.Start(begun, part.name, trace.WithTimestamp(at))
		at = at.Add(part.took)
		child.End(trace.WithTimestamp(at))
	}
	var actions []string
	for i, a := range report.Actions {
		actions = append(actions, a.Kind+"-"+a.Result)
		if i < mostPods {
			span.AddEvent(a.Name(), trace.WithTimestamp(a.At), trace.WithAttributes(
				attribute.String("ray.group", a.Group), attribute.String("heliostat.message", a.Message),
				attribute.StringSlice("heliostat.pods", a.Pods[:min(len(a.Pods), mostPods)])))
		}
	}
	span.SetAttributes(s.attributes()...)
	span.SetAttributes(attribute.String("heliostat.mode", report.Mode),
		attribute.StringSlice("heliostat.actions", actions),
		attribute.StringSlice("heliostat.reasons", report.Reasons))
	if report.Err != "" {
		span.SetStatus(codes.Error, report.Err)
	}
	span.End(trace.WithTimestamp(at))
}

// attributes returns the attributes that name the RayCluster.
func (s *Span) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("k8s.namespace.name", s.namespace),
		attribute.String("ray.cluster", s.cluster),
	}
}

// Called starts the span of a call that requests resources, as part of the caller's trace if the context has one.
// The scale-up of the next cycle belongs to it. The returned function ends the span, when the request is stored.
func (t *Tracer) Called(ctx context.Context, name, namespace, cluster string) (context.Context, func(error)) {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("k8s.namespace.name", namespace), attribute.String("ray.cluster", cluster)))
	key, own := namespace+"/"+cluster, &call{span: span.SpanContext(), at: time.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.exports && own.span.IsSampled() {
		t.calls[key] = own
	}
	return ctx, func(err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		own.stored = time.Now()
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
			if t.calls[key] == own {
				delete(t.calls, key)
			}
		}
		span.End()
	}
}

// ids identify a span before it is known whether the span will exist. The log lines of a cycle contain them from the
// start.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

func newIDs() ids { return ids{trace: newTraceID(), span: newSpanID()} }

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

type idsKey struct{}

// withIDs sets the IDs of the next span that starts with the context.
func withIDs(ctx context.Context, i ids) context.Context { return context.WithValue(ctx, idsKey{}, i) }

// idSource gives a span the IDs of withIDs, or random IDs.
type idSource struct{}

// NewIDs returns the IDs of the first span of a trace.
func (idSource) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	i, known := ctx.Value(idsKey{}).(ids)
	if !known {
		i = newIDs()
	}
	return i.trace, i.span
}

// NewSpanID returns the ID of any other span of a trace.
func (idSource) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if i, known := ctx.Value(idsKey{}).(ids); known {
		return i.span
	}
	return newSpanID()
}
