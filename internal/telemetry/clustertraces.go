package telemetry

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// clusterTraces is the state of the tracer for one RayCluster.
type clusterTraces struct {
	// call is the call that the last cycle read. Each call starts at most one scale-up.
	call string
	// wanted is the scale-up that is not patched yet. open are the scale-ups with pending pods, oldest first.
	wanted *scaleUp
	open   []*scaleUp
	// pods are the pending pods, and alive the pods whose Ray nodes are alive.
	pods  stages
	alive map[string]bool
}

// follow returns the state for the RayCluster of a cycle. On the first call for a RayCluster, it resumes the scale-up
// of another process. The caller holds mu.
func (t *Tracer) follow(s *Span) *clusterTraces {
	f := t.clusters[s.key()]
	if f == nil {
		f = &clusterTraces{}
		t.clusters[s.key()] = f
		f.resume(s)
	}
	return f
}

// resume continues a scale-up that another process started. It uses a new trace with a link to the first one. The first
// cycle with pods shows which of them belong to the scale-up; if none do, the scale-up is dropped.
func (f *clusterTraces) resume(s *Span) {
	root, at := parseScaleUp(s.annotations.ScaleUp)
	if !root.IsValid() || s.at.Sub(at) > maxFollowed {
		return
	}
	up := s.begin(ids{trace: newTraceID(), span: newSpanID()}, trace.SpanContext{}, s.at,
		trace.WithLinks(trace.Link{SpanContext: root}))
	up.patchedAt = at
	up.span.SetAttributes(attribute.Bool("heliostat.resumed", true))
	f.open = append(f.open, up)
}

// begin starts the root span of a scale-up.
func (s *Span) begin(root ids, parent trace.SpanContext, wanted time.Time, options ...trace.SpanStartOption) *scaleUp {
	below := withIDs(trace.ContextWithRemoteSpanContext(context.Background(), parent), root)
	_, span := s.tracer.tracer.Start(
		below,
		"scale-up",
		append(options, trace.WithTimestamp(wanted), trace.WithAttributes(s.attributes()...))...)
	return &scaleUp{
		tracer:  s.tracer.tracer,
		span:    span,
		wanted:  wanted,
		missing: map[string]int{},
		late:    map[string]bool{},
		broken:  map[string]bool{},
	}
}

// ScaleUpAnnotation returns the value that a patch stores in the RayCluster when it makes groups larger. Another
// process uses it to resume the trace. It is "" if there is nothing to store.
func ScaleUpAnnotation(ctx context.Context, at time.Time) string {
	s, _ := ctx.Value(spanKey{}).(*Span)
	if s == nil || !s.tracer.exports {
		return ""
	}
	t := s.tracer
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.clusters[s.key()]; f != nil && f.wanted != nil {
		return sampledScaleUp(f.wanted.context(), at)
	}
	// This span is never exported; it only shows the decision of the sampler.
	return sampledScaleUp(s.begin(s.root, s.call, s.at).context(), at)
}

func sampledScaleUp(root trace.SpanContext, at time.Time) string {
	if !root.IsSampled() {
		return ""
	}
	return formatScaleUp(root, at)
}

// track starts a scale-up at the first cycle that wants growth, and ends it when no cycle wants growth any more. It
// returns the scale-up of the cycle, or nil.
func (f *clusterTraces) track(s *Span, report CycleReport) *scaleUp {
	switch {
	case report.GrowthWanted.IsZero():
		if f.wanted != nil && !report.Cycle.RayFailed && !report.Cycle.Failed {
			f.wanted.end(withdrawnAll, report.At)
			f.wanted = nil
		}
		return f.wanted
	case f.wanted == nil:
		f.wanted = s.begin(s.root, s.call, report.GrowthWanted)
	}
	up := f.wanted
	for _, a := range report.Cycle.Actions {
		if a.Grown != "" {
			up.patched(a, report.Reasons)
		}
	}
	if !up.patchedAt.IsZero() {
		f.wanted = nil
		f.open = append(f.open, up)
	}
	return up
}

// observe follows the pods of open scale-ups, and ends the scale-ups that are complete.
func (f *clusterTraces) observe(report CycleReport) {
	if len(f.open) == 0 {
		f.pods, f.alive = stages{}, nil
		return
	}
	f.adopt(report.Cycle)
	f.addAlive(report.Cycle)
	for _, a := range report.Cycle.Actions {
		if a.Pods < 0 {
			f.withdraw(a)
		}
	}
	f.pods.observe(report.Cycle, stageHooks{
		stage: func(string, time.Duration) {},
		arrived: func(pod string, j *progress) {
			if up := f.waiting(j); up != nil {
				up.arrive(pod, j)
			}
		},
		lost: func(pod string, j *progress) {
			if up := f.waiting(j); up != nil {
				up.lose(pod, j, report.Cycle.At)
			}
		},
	})
	for pod, j := range f.pods.coming {
		if up := f.waiting(j); up != nil {
			up.slow(pod, j, report.Cycle.At)
		}
	}
	for _, up := range f.open {
		for group, why := range report.Cooling {
			up.fail(group, why, report.Cycle.At)
		}
	}
	f.close(report.Cycle)
}

// adopt assigns the pending pods that a resumed scale-up requested to that scale-up.
func (f *clusterTraces) adopt(c Cycle) {
	up := f.open[0]
	if up.asked > 0 || c.Pods == nil {
		return
	}
	for p := range c.Pods {
		if created, _ := c.Moments(p.Name); !p.Alive && created.After(up.patchedAt.Add(-time.Second)) {
			f.pods.grew(p.Group, growth{seen: up.patchedAt, patched: up.patchedAt})
			up.missing[p.Group]++
			up.asked++
		}
	}
	if up.asked == 0 {
		f.open = f.open[1:] // no pods are pending, so there is nothing to export
	}
}

// addAlive adds pods whose Ray nodes are alive and that no cycle observed while they were pending.
func (f *clusterTraces) addAlive(c Cycle) {
	if c.Pods == nil {
		return
	}
	alive := map[string]bool{}
	for p := range c.Pods {
		if !p.Alive {
			continue
		}
		alive[p.Name] = true
		if f.alive != nil && !f.alive[p.Name] && f.pods.coming[p.Name] == nil {
			f.pods.begin(p, c)
		}
	}
	f.alive = alive
}

// withdraw removes pods that are no longer wanted, from the latest scale-ups first.
func (f *clusterTraces) withdraw(a Action) {
	left := -a.Pods
	for _, up := range slices.Backward(f.open) {
		left = up.withdraw(a.Group, left)
	}
}

// waiting returns the oldest scale-up that a pod can belong to.
func (f *clusterTraces) waiting(j *progress) *scaleUp {
	for _, up := range f.open {
		if up.missing[j.group] > 0 && !j.patched.IsZero() && !up.patchedAt.After(j.patched) {
			return up
		}
	}
	return nil
}

// close ends the scale-ups that are complete or take too long, and the oldest ones if there are too many.
func (f *clusterTraces) close(c Cycle) {
	f.open = slices.DeleteFunc(f.open, func(up *scaleUp) bool {
		switch {
		case up.asked > 0 && up.complete():
			up.end(up.outcome(), c.At)
		case c.At.Sub(up.patchedAt) > maxFollowed:
			up.end(unfinished, c.At)
		default:
			return false
		}
		return true
	})
	for len(f.open) > mostOpen {
		f.open[0].end(superseded, c.At)
		f.open = f.open[1:]
	}
}

// stop ends all open scale-ups.
func (f *clusterTraces) stop(outcome string, at time.Time) {
	if f.wanted != nil {
		f.wanted.end(outcome, at)
	}
	for _, up := range f.open {
		if up.asked > 0 {
			up.end(outcome, at)
		}
	}
}

// Gone ends the traces of a deleted RayCluster.
func (t *Tracer) Gone(namespace, cluster string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.clusters[namespace+"/"+cluster]; f != nil {
		f.stop(clusterGone, at)
		delete(t.clusters, namespace+"/"+cluster)
	}
}

// interrupt ends all traces when the process ends. The next process resumes them.
func (t *Tracer) interrupt(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.clusters {
		f.stop(interrupted, at)
	}
	t.clusters = map[string]*clusterTraces{}
}
