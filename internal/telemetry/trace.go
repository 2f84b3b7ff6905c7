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

// Tracer exports one trace for each cycle that changed something or failed. Pods that a cycle launched are part of its
// trace. Without a collector it exports nothing, but the IDs that connect the log lines of a cycle still exist.
//
//	cycle                     observe, wait, plan, apply
//	├ seen_to_patched         growth first wanted ► patched
//	└ pod                     patched ─────────────────► its Ray node lives
//	  ├ patched_to_scheduled
//	  └ scheduled_to_alive
type Tracer struct {
	tracer   trace.Tracer
	exports  bool
	shutdown func(context.Context) error

	mu sync.Mutex // protects growths
	// growths are the last cycles that made a group larger, by RayCluster and group.
	growths map[string]map[string]*tracedGrowth
}

// tracedGrowth is a cycle that made a group larger.
type tracedGrowth struct {
	cycle   trace.SpanContext
	patched time.Time
	// pods counts the pods with spans.
	pods int
}

const (
	// queued limits the spans, of a few kilobytes each, that wait for the collector; further spans are dropped.
	// OTEL_BSP_MAX_QUEUE_SIZE overrides the limit.
	queued = 512
	// mostPods limits the pods of a group with spans, three spans each. They must fit into the queue.
	mostPods = 32
)

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
	return &Tracer{tracer: provider.Tracer(scope), exports: true, shutdown: provider.Shutdown,
		growths: map[string]map[string]*tracedGrowth{}}
}

// Span is a cycle that has begun. A cycle that is not exported leaves no data.
type Span struct {
	tracer             *Tracer
	namespace, cluster string
	own                ids
}

type spanKey struct{}

// Begin starts one cycle on a RayCluster. Log records with the returned context contain the RayCluster and the IDs of
// the cycle's span, even if the span is not exported.
func (t *Tracer) Begin(ctx context.Context, namespace, cluster string) (context.Context, *Span) {
	s := &Span{tracer: t, namespace: namespace, cluster: cluster, own: newIDs()}
	ctx = trace.ContextWithSpanContext(ctx,
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: s.own.trace, SpanID: s.own.span}))
	return context.WithValue(ctx, spanKey{}, s), s
}

func (s *Span) key() string { return s.namespace + "/" + s.cluster }

// CycleReport is what a span exports about its cycle.
type CycleReport struct {
	Cycle Cycle
	// At is the start of the cycle. Observed, Waited, Planned and Applied are the durations of its parts, in this
	// order. Few cycles wait.
	At                                 time.Time
	Observed, Waited, Planned, Applied time.Duration
	// Mode is the mode of the cluster. Actions are what the cycle did, and Reasons are the codes of their reasons.
	Mode    string
	Actions []addon.Action
	Reasons []string
	// Err is the error of the cycle, or empty.
	Err string
}

// End exports the cycle, with one child for each of its parts.
func (s *Span) End(report CycleReport) {
	if !s.tracer.exports {
		return
	}
	_, span := s.tracer.tracer.Start(withIDs(context.Background(), s.own), "cycle", trace.WithTimestamp(report.At),
		trace.WithAttributes(attribute.String("k8s.namespace.name", s.namespace),
			attribute.String("ray.cluster", s.cluster)))
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
	span.SetAttributes(attribute.String("heliostat.mode", report.Mode),
		attribute.StringSlice("heliostat.actions", actions),
		attribute.StringSlice("heliostat.reasons", report.Reasons))
	if report.Err != "" {
		span.SetStatus(codes.Error, report.Err)
	}
	span.End(trace.WithTimestamp(at))
	s.tracer.grown(s.key(), span, report.Cycle)
}

// grown notes which groups a cycle made larger, so that their pods become part of its trace.
func (t *Tracer) grown(key string, cycle trace.Span, c Cycle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range c.Actions {
		if a.Grown == "" {
			continue
		}
		t.child(cycle.SpanContext(), seenToPatched, a.At.Add(-c.SeenToPatched), a.At)
		if t.growths[key] == nil {
			t.growths[key] = map[string]*tracedGrowth{}
		}
		t.growths[key][a.Grown] = &tracedGrowth{cycle: cycle.SpanContext(), patched: a.At}
	}
}

// child exports a span below another one.
func (t *Tracer) child(
	parent trace.SpanContext, name string, from, to time.Time, attributes ...attribute.KeyValue,
) trace.SpanContext {
	_, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), name,
		trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(to))
	return span.SpanContext()
}

// arrived exports a pod whose Ray node is alive, if a cycle in growths launched it.
func (t *Tracer) arrived(key, pod string, j *progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.growths[key][j.group]
	if g == nil || !g.patched.Equal(j.patched) || g.pods == mostPods {
		return
	}
	g.pods++
	span := t.child(g.cycle, "pod", j.patched, j.alive, attribute.String("k8s.pod.name", pod),
		attribute.String("ray.group", j.group))
	if scheduled := j.scheduled; !scheduled.IsZero() {
		if scheduled.Before(j.patched) { // Kubernetes truncates it to seconds
			scheduled = j.patched
		}
		t.child(span, patchedToScheduled, j.patched, scheduled)
		t.child(span, scheduledToAlive, scheduled, j.alive)
	}
}

// forget forgets the cycles of a RayCluster.
func (t *Tracer) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.growths, key)
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
