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

// scaleUp is one trace that has not ended: from growth first wanted to the living Ray nodes that it asked for.
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
	// missing is how many pods of each group have not arrived yet, without those that were withdrawn.
	missing map[string]int
	// asked, arrived, lost and withdrawn count pods.
	asked, arrived, lost, withdrawn int
	// spans is how many pods have spans, late the slow stages and broken the failing groups that have been exported.
	spans  int
	late   map[string]bool
	broken map[string]bool
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

// Bounds of the spans of one scale-up, and of the number of scale-ups that are followed.
const (
	// mostPods have spans of their own, of three each; all are counted. They must fit into the queue to the collector.
	mostPods = 32
	// mostOpen scale-ups of one RayCluster are followed at a time.
	mostOpen = 8
	// slowAfter is how long a stage may last before a span reports it: the default of --allocation-timeout.
	slowAfter = 5 * time.Minute
	// longest is how long a scale-up is followed.
	maxFollowed = time.Hour
)

func (u *scaleUp) context() trace.SpanContext { return u.span.SpanContext() }

// child exports a child span of this one.
func (u *scaleUp) child(
	parent trace.Span, name string, from, to time.Time, attributes ...attribute.KeyValue,
) trace.Span {
	_, span := u.tracer.Start(trace.ContextWithSpan(context.Background(), parent), name, trace.WithTimestamp(from),
		trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(later(from, to)))
	return span
}

// later returns to, or from if to is before it: Kubernetes truncates to seconds.
func later(from, to time.Time) time.Time {
	if to.Before(from) {
		return from
	}
	return to
}

// patched adds what a patch asked for.
func (u *scaleUp) patched(a Action, reasons []string) {
	if u.patchedAt.IsZero() {
		u.patchedAt = a.At
		u.child(u.span, seenToPatched, u.wanted, a.At)
	}
	u.missing[a.Grown] += a.Pods
	u.asked += a.Pods
	u.reason = reasons
}

// arrive notes that the Ray node of a pod lives.
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

// lose notes that a pod is gone before its Ray node lived.
func (u *scaleUp) lose(pod string, j *progress, at time.Time) {
	u.lost++
	if u.spans++; u.spans > mostPods {
		return
	}
	span := u.pod(pod, j, at)
	span.SetStatus(codes.Error, "the pod is gone before "+notReached(j))
	span.End(trace.WithTimestamp(later(u.patchedAt, at)))
}

// notReached returns what a pod on its way has not reached.
func notReached(j *progress) string {
	if j.scheduled.IsZero() {
		return "it had a node"
	}
	return "its Ray node lived"
}

// slow exports a span for a stage that lasts too long, once for each stage, while it lasts.
func (u *scaleUp) slow(pod string, j *progress, now time.Time) {
	stage, since := patchedToScheduled, u.patchedAt
	if !j.scheduled.IsZero() {
		stage, since = scheduledToAlive, later(u.patchedAt, j.scheduled)
	}
	if now.Sub(since) <= slowAfter || u.late[pod+stage] || len(u.late) >= mostPods {
		return
	}
	u.late[pod+stage] = true
	_, span := u.tracer.Start(trace.ContextWithSpan(context.Background(), u.span), "slow", trace.WithTimestamp(since),
		trace.WithAttributes(attribute.String("k8s.pod.name", pod), attribute.String("ray.group", j.group),
			attribute.String("heliostat.stage", stage)))
	span.SetStatus(codes.Error,
		fmt.Sprintf("%v after it began, %s", now.Sub(since).Round(time.Second), "not yet: "+notReached(j)))
	span.End(trace.WithTimestamp(now))
}

// fail records that a group which this scale-up waits for is failing, once.
func (u *scaleUp) fail(group, why string, at time.Time) {
	if u.missing[group] <= 0 || u.broken[group] {
		return
	}
	u.broken[group] = true
	u.span.AddEvent("group broken off", trace.WithTimestamp(at), trace.WithAttributes(
		attribute.String("ray.group", group), attribute.String("heliostat.reason", why)))
}

// withdraw takes back up to count pods of a group and returns how many remain to be taken back from others.
func (u *scaleUp) withdraw(group string, count int) int {
	taken := min(count, max(0, u.missing[group]))
	u.missing[group] -= taken
	u.withdrawn += taken
	return count - taken
}

// complete reports whether nothing is missing any more.
func (u *scaleUp) complete() bool {
	for _, count := range u.missing {
		if count > 0 {
			return false
		}
	}
	return true
}

// outcome returns the outcome of a scale-up that is complete.
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
