package telemetry

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// following is what the tracer keeps of one RayCluster.
type following struct {
	// call is the call that a cycle has looked at last, so that it begins no more than one scale-up.
	call string
	// wanted is the scale-up that is not patched yet; open are those whose pods are on their way, oldest first.
	wanted *scaleUp
	open   []*scaleUp
	// pods are those on their way, alive those that live.
	pods  stages
	alive map[string]bool
}

// follow finds what is kept of a cycle's RayCluster. The first time it takes up the scale-up that another process left.
// The caller holds mu.
func (t *Tracer) follow(s *Span) *following {
	f := t.clusters[s.key()]
	if f == nil {
		f = &following{}
		t.clusters[s.key()] = f
		f.resume(s)
	}
	return f
}

// resume begins the rest of a scale-up that another process began, in a trace of its own with a link to the first. Which
// pods belong to it shows in the first cycle that sees them; one that sees none drops it.
func (f *following) resume(s *Span) {
	root, at := scaleUpOf(s.kept.ScaleUp)
	if !root.IsValid() || s.at.Sub(at) > longest {
		return
	}
	up := s.begin(ids{trace: newTraceID(), span: newSpanID()}, trace.SpanContext{}, s.at, trace.WithLinks(trace.Link{SpanContext: root}))
	up.patchedAt = at
	up.span.SetAttributes(attribute.Bool("heliostat.resumed", true))
	f.open = append(f.open, up)
}

// begin starts the root of a scale-up.
func (s *Span) begin(root ids, parent trace.SpanContext, wanted time.Time, options ...trace.SpanStartOption) *scaleUp {
	below := choosing(trace.ContextWithRemoteSpanContext(context.Background(), parent), root)
	_, span := s.tracer.tracer.Start(below, "scale-up", append(options, trace.WithTimestamp(wanted), trace.WithAttributes(s.attributes()...))...)
	return &scaleUp{tracer: s.tracer.tracer, span: span, wanted: wanted, missing: map[string]int{}, late: map[string]bool{}, broken: map[string]bool{}}
}

// Growing is what a patch that makes groups larger is to keep in the RayCluster, so that another process can take the trace
// up; "" where there is nothing to keep.
func Growing(ctx context.Context, at time.Time) string {
	s, _ := ctx.Value(current{}).(*Span)
	if s == nil || !s.tracer.exports {
		return ""
	}
	t := s.tracer
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.clusters[s.key()]; f != nil && f.wanted != nil {
		return kept(f.wanted.context(), at)
	}
	// The span that is begun here is never told; it shows what the sampler will decide.
	return kept(s.begin(s.root, s.call, s.at).context(), at)
}

func kept(root trace.SpanContext, at time.Time) string {
	if !root.IsSampled() {
		return ""
	}
	return keepScaleUp(root, at)
}

// want begins a scale-up with the first cycle that wants growth and ends it when none wants it any more. It returns the one
// that the cycle belongs to, or nil.
func (f *following) want(s *Span, told Told) *scaleUp {
	switch {
	case told.GrowthWanted.IsZero():
		if f.wanted != nil && !told.Cycle.RayFailed && !told.Cycle.Failed {
			f.wanted.end(takenBack, told.At)
			f.wanted = nil
		}
		return f.wanted
	case f.wanted == nil:
		f.wanted = s.begin(s.root, s.call, told.GrowthWanted)
	}
	up := f.wanted
	for _, a := range told.Cycle.Actions {
		if a.Grown != "" {
			up.patched(a, told.Reasons)
		}
	}
	if !up.patchedAt.IsZero() {
		f.wanted = nil
		f.open = append(f.open, up)
	}
	return up
}

// observe follows the pods of open scale-ups and ends those that are over.
func (f *following) observe(told Told) {
	if len(f.open) == 0 {
		f.pods, f.alive = stages{}, nil
		return
	}
	f.adopt(told.Cycle)
	f.notice(told.Cycle)
	for _, a := range told.Cycle.Actions {
		if a.Pods < 0 {
			f.withdraw(a)
		}
	}
	f.pods.observe(told.Cycle, hearers{
		stage: func(string, time.Duration) {},
		arrived: func(pod string, j *journey) {
			if up := f.waiting(j); up != nil {
				up.arrive(pod, j)
			}
		},
		lost: func(pod string, j *journey) {
			if up := f.waiting(j); up != nil {
				up.lose(pod, j, told.Cycle.At)
			}
		},
	})
	for pod, j := range f.pods.coming {
		if up := f.waiting(j); up != nil {
			up.slow(pod, j, told.Cycle.At)
		}
	}
	for _, up := range f.open {
		for group, why := range told.Cooling {
			up.fail(group, why, told.Cycle.At)
		}
	}
	f.close(told.Cycle)
}

// adopt gives a scale-up that was taken up the pods that it asked for and that are still on their way.
func (f *following) adopt(c Cycle) {
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
		f.open = f.open[1:] // nothing is on its way, so nothing is told
	}
}

// notice lets pods that live although nobody saw them on their way be on it until now.
func (f *following) notice(c Cycle) {
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

// withdraw takes pods that are not asked for any more from the latest scale-ups first.
func (f *following) withdraw(a Action) {
	left := -a.Pods
	for _, up := range slices.Backward(f.open) {
		left = up.withdraw(a.Group, left)
	}
}

// waiting is the oldest scale-up that a pod may belong to.
func (f *following) waiting(j *journey) *scaleUp {
	for _, up := range f.open {
		if up.missing[j.group] > 0 && !j.patched.IsZero() && !up.patchedAt.After(j.patched) {
			return up
		}
	}
	return nil
}

// close ends what is complete, what takes too long, and the oldest where there are too many.
func (f *following) close(c Cycle) {
	f.open = slices.DeleteFunc(f.open, func(up *scaleUp) bool {
		switch {
		case up.asked > 0 && up.complete():
			up.end(up.outcome(), c.At)
		case c.At.Sub(up.patchedAt) > longest:
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

// stop ends everything that is open.
func (f *following) stop(outcome string, at time.Time) {
	if f.wanted != nil {
		f.wanted.end(outcome, at)
	}
	for _, up := range f.open {
		if up.asked > 0 {
			up.end(outcome, at)
		}
	}
}

// Gone ends the traces of a RayCluster that is deleted.
func (t *Tracer) Gone(namespace, cluster string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.clusters[namespace+"/"+cluster]; f != nil {
		f.stop(clusterGone, at)
		delete(t.clusters, namespace+"/"+cluster)
	}
}

// interrupt ends all traces with the process; the next one takes them up.
func (t *Tracer) interrupt(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.clusters {
		f.stop(interrupted, at)
	}
	t.clusters = map[string]*following{}
}
