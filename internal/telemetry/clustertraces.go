package telemetry

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// clusterTraces is the state of the tracer for one RayCluster.
type clusterTraces struct {
	// wanted is the scale-up that is not patched yet. open are the scale-ups with pending pods, oldest first.
	wanted *scaleUp
	open   []*scaleUp
	// pods are the pending pods, and alive the pods whose Ray nodes are alive.
	pods  stages
	alive map[string]bool
}

// begin starts the root span of a scale-up.
func (s *Span) begin(wanted time.Time) *scaleUp {
	below := withIDs(trace.ContextWithRemoteSpanContext(context.Background(), s.parent), s.root)
	_, span := s.tracer.tracer.Start(below, "scale-up", trace.WithTimestamp(wanted),
		trace.WithAttributes(s.attributes()...))
	return &scaleUp{
		tracer:  s.tracer.tracer,
		span:    span,
		wanted:  wanted,
		missing: map[string]int{},
	}
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
		f.wanted = s.begin(report.GrowthWanted)
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
	f.close(report.Cycle)
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
	key := namespace + "/" + cluster
	if f := t.clusters[key]; f != nil {
		f.stop(clusterGone, at)
	}
	delete(t.clusters, key)
	delete(t.calls, key)
}

// interrupt ends all traces when the process ends.
func (t *Tracer) interrupt(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.clusters {
		f.stop(interrupted, at)
	}
	t.clusters = map[string]*clusterTraces{}
}
