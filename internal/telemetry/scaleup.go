package telemetry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// scaleUp is one open trace. It lasts from the time when growth is first wanted until the requested Ray nodes live.
//
//	scale-up                    wanted ──────────────────────────────► last Ray node lives
//	├ cycle                     observe, plan, apply; one for each that wanted it and did something
//	├ seen_to_patched           wanted ► patched
//	└ pod                       patched ─────────────────► its Ray node lives
//	  ├ patched_to_scheduled
//	  └ scheduled_to_alive
type scaleUp struct {
	tracer            trace.Tracer
	span              trace.Span
	wanted, patchedAt time.Time
	// missing counts the pods of each group that have not arrived yet, without withdrawn pods.
	missing map[string]int
	// asked, arrived, lost and withdrawn count pods.
	asked, arrived, lost, withdrawn int
	// spans counts the pods with spans.
	spans  int
	reason []string
}

// The outcomes of a scale-up, in heliostat.outcome.
const (
	allAlive     = "alive"
	withdrawnAll = "withdrawn"
	unfinished   = "unfinished"
	superseded   = "superseded"
	interrupted  = "interrupted"
	clusterGone  = "deleted"
)

// Limits for the spans of one scale-up, and for the number of scale-ups at the same time.
const (
	// mostPods limits the pods with spans, three spans each; all pods are counted. The spans must fit into the export
	// queue.
	mostPods = 32
	// mostOpen limits the scale-ups of one RayCluster that the tracer follows at the same time.
	mostOpen = 8
	// slowAfter is the duration after which the span of a pod says that it is slow: the default of
	// --allocation-timeout.
	slowAfter = 5 * time.Minute
	// maxFollowed is the maximum time for which the tracer follows a scale-up.
	maxFollowed = time.Hour
)

func (u *scaleUp) context() trace.SpanContext { return u.span.SpanContext() }

// child exports a child span of this scale-up.
func (u *scaleUp) child(
	parent trace.Span, name string, from, to time.Time, attributes ...attribute.KeyValue,
) trace.Span {
	_, span := u.tracer.Start(trace.ContextWithSpan(context.Background(), parent), name, trace.WithTimestamp(from),
		trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(later(from, to)))
	return span
}

// later returns the later of from and to. to can be before from, because Kubernetes truncates times to seconds.
func later(from, to time.Time) time.Time {
	if to.Before(from) {
		return from
	}
	return to
}

// patched adds the pods that a patch requested.
func (u *scaleUp) patched(a Action, reasons []string) {
	if u.patchedAt.IsZero() {
		u.patchedAt = a.At
		u.child(u.span, seenToPatched, u.wanted, a.At)
	}
	u.missing[a.Grown] += a.Pods
	u.asked += a.Pods
	u.reason = reasons
}

// arrive records that the Ray node of a pod is alive.
func (u *scaleUp) arrive(pod string, j *progress) {
	u.missing[j.group]--
	u.arrived++
	if u.spans++; u.spans > mostPods && !u.complete() {
		return
	}
	span := u.pod(pod, j, j.alive)
	scheduled := later(u.patchedAt, j.scheduled)
	if !j.scheduled.IsZero() {
		u.child(span, patchedToScheduled, u.patchedAt, scheduled)
		u.child(span, scheduledToAlive, scheduled, j.alive)
	}
	span.End(trace.WithTimestamp(later(u.patchedAt, j.alive)))
}

func (u *scaleUp) pod(pod string, j *progress, until time.Time) trace.Span {
	_, span := u.tracer.Start(trace.ContextWithSpan(context.Background(), u.span), "pod",
		trace.WithTimestamp(u.patchedAt),
		trace.WithAttributes(attribute.String("k8s.pod.name", pod), attribute.String("ray.group", j.group)))
	if until.Sub(u.patchedAt) > slowAfter {
		span.SetAttributes(attribute.Bool("heliostat.slow", true))
	}
	return span
}

// lose records that a pod disappeared before its Ray node was alive.
func (u *scaleUp) lose(pod string, j *progress, at time.Time) {
	u.lost++
	if u.spans++; u.spans > mostPods {
		return
	}
	span := u.pod(pod, j, at)
	span.SetStatus(codes.Error, "the pod is gone before "+notReached(j))
	span.End(trace.WithTimestamp(later(u.patchedAt, at)))
}

// notReached returns the state that a pending pod has not reached.
func notReached(j *progress) string {
	if j.scheduled.IsZero() {
		return "it had a node"
	}
	return "its Ray node lived"
}

// withdraw removes up to count pods of a group, and returns how many remain to be removed from other scale-ups.
func (u *scaleUp) withdraw(group string, count int) int {
	taken := min(count, max(0, u.missing[group]))
	u.missing[group] -= taken
	u.withdrawn += taken
	return count - taken
}

// complete reports whether no pods are missing any more.
func (u *scaleUp) complete() bool {
	for _, count := range u.missing {
		if count > 0 {
			return false
		}
	}
	return true
}

// outcome returns the outcome of a complete scale-up.
func (u *scaleUp) outcome() string {
	if u.arrived == 0 && u.withdrawn > 0 {
		return withdrawnAll
	}
	return allAlive
}

// end exports the root span.
func (u *scaleUp) end(outcome string, at time.Time) {
	groups := make([]string, 0, len(u.missing))
	for group := range u.missing {
		groups = append(groups, group)
	}
	slices.Sort(groups)
	u.span.SetAttributes(attribute.String("heliostat.outcome", outcome), attribute.StringSlice("ray.groups", groups),
		attribute.StringSlice("heliostat.reasons", u.reason), attribute.Int("heliostat.pods.asked", u.asked),
		attribute.Int("heliostat.pods.alive", u.arrived), attribute.Int("heliostat.pods.lost", u.lost),
		attribute.Int("heliostat.pods.withdrawn", u.withdrawn))
	if outcome == unfinished || u.lost > 0 {
		u.span.SetStatus(codes.Error, fmt.Sprintf("%d of %d pods joined Ray, %d were lost", u.arrived, u.asked, u.lost))
	}
	u.span.End(trace.WithTimestamp(later(u.wanted, at)))
}
