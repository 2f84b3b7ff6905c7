package controller

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// longestCooldown bounds the doubling pause of a failing group.
const longestCooldown = time.Hour

// breakerSettings are what the breakers and shortages of a RayCluster go by.
type breakerSettings struct {
	// AllocationTimeout is how long a pod may take to join Ray before its group counts as failing.
	AllocationTimeout time.Duration
	// Cooldown is how long a failing group takes no launches at first.
	Cooldown time.Duration
	// UnschedulableGrace is how long a pod may have no node, with no node autoscaler announcing one, before that proves
	// that its group is out of stock.
	UnschedulableGrace time.Duration
}

// breaker breaks a group off for a while when its pods do not join Ray: out of stock, refused by the API server, or
// crashing. While it is open the group takes no launches and those of its waiting pods that nothing can be expected of
// count for nothing, so that the next group serves the demand. It is an optimisation: lost with the process, it opens
// again as soon as the proof is seen again.
//
// What opens it is proof (shortages) or, without any, AllocationTimeout without a pod that joined. Each pause is twice
// the one before; the memory of that halves with every BreakerCooldown that passes without a failure. A pod that joins
// while nothing proves a shortage closes it, and the group is as good as any again.
type breaker struct {
	// stalledSince is since when pods are waited for and none has joined; zero while none is waited for.
	stalledSince time.Time
	// joined are the pods that have joined Ray and are there still, by UID.
	joined    map[string]bool
	openUntil time.Time
	cooldown  time.Duration
	reason    string
	// shortage: it was opened by proof that no node comes, so pods that have a node still count.
	shortage bool
	// launched is how many machines on their way have been counted at least since then; more are a sign of stock.
	launched int
	// failedAt is when it was last opened; zero once a pod has joined since.
	failedAt time.Time
	// fell are the pods that failed before they joined, since the last one that joined.
	fell map[string]bool
}

// sighting is what one reading tells of a group.
type sighting struct {
	// joined are the pods that have joined, there all that exist, by UID; waiting counts those that are waited for.
	joined, there map[string]bool
	waiting       int
	// launched counts those of them that a machine on its way has room for.
	launched int
	// why says what the waiting ones seem to wait for; proof, that no node will come for them, or is empty.
	why, proof string
	// failed are the pods that failed without having joined, by UID, with what Kubernetes says of them.
	failed map[string]string
}

// observe takes one reading in.
func (b *breaker) observe(now time.Time, s sighting, settings breakerSettings) {
	progress := b.welcome(s)
	if progress {
		b.fell = nil
	}
	if progress && s.proof == "" {
		b.openUntil, b.failedAt = earlierOf(b.openUntil, now), time.Time{}
	}
	if b.shortage && b.open(now) {
		if s.launched > b.launched && s.proof == "" {
			b.openUntil = now // there is stock again
		}
		b.launched = min(b.launched, s.launched)
	}
	switch {
	case s.waiting == 0 || progress:
		b.stalledSince = time.Time{}
		if s.waiting > 0 {
			b.stalledSince = now
		}
	case b.stalledSince.IsZero():
		b.stalledSince = now
	}
	proof := s.proof
	if proof == "" {
		proof = b.fallen(s.failed)
	}
	switch {
	case b.open(now):
	case proof != "":
		b.trip(now, settings, proof)
		b.shortage, b.launched = s.proof != "", s.launched
	case !b.stalledSince.IsZero() && now.Sub(b.stalledSince) >= settings.AllocationTimeout:
		b.trip(now, settings, fmt.Sprintf("no pod joined Ray within %s: %s", planner.Span(settings.AllocationTimeout.Seconds()), s.why))
	}
}

// welcome reports whether a pod has joined that had not before: one whose Ray node died and came back proves nothing.
func (b *breaker) welcome(s sighting) (progress bool) {
	joined := map[string]bool{}
	for uid := range b.joined {
		if s.there[uid] {
			joined[uid] = true
		}
	}
	for uid := range s.joined {
		progress = progress || !joined[uid]
		joined[uid] = true
	}
	b.joined = joined
	return progress
}

// failuresForProof is how many pods in a row must fail before they join: one may meet a bad node, or be evicted.
const failuresForProof = 3

// fallen notes failed pods, and says so when they are too many.
func (b *breaker) fallen(failed map[string]string) string {
	last := ""
	for _, uid := range slices.Sorted(maps.Keys(failed)) {
		if b.fell == nil {
			b.fell = map[string]bool{}
		}
		b.fell[uid] = true
		last = failed[uid]
	}
	if last == "" || len(b.fell) < failuresForProof {
		return ""
	}
	return fmt.Sprintf("%d pods failed before they joined Ray: %s", len(b.fell), last)
}

// trip opens the breaker: for twice as long as last time, less what has been forgiven since.
func (b *breaker) trip(now time.Time, settings breakerSettings, reason string) {
	if quiet := now.Sub(b.openUntil); !b.openUntil.IsZero() && quiet > 0 {
		b.cooldown >>= min(int(quiet/settings.Cooldown), 62)
	}
	b.cooldown = min(max(2*b.cooldown, settings.Cooldown), longestCooldown)
	b.openUntil, b.failedAt = now.Add(b.cooldown), now
	b.stalledSince = b.openUntil // the next chance starts when this pause ends
	b.fell, b.shortage = nil, false
	b.reason = reason
}

func (b *breaker) open(now time.Time) bool { return now.Before(b.openUntil) }

// earlierOf is the earlier of two moments; a zero one stays.
func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// breakers holds one breaker per group name.
type breakers map[string]*breaker

func (b breakers) observe(now time.Time, cluster nodepool.Cluster, members []membership.Member, proofs map[string]string, settings breakerSettings) {
	seen := sightings(cluster, members)
	for _, g := range cluster.Groups {
		if !membership.Reconciled(cluster, g.Name) {
			delete(b, g.Name) // its pods are nobody's to wait for, and afterwards it starts anew
			continue
		}
		s := seen[g.Name]
		s.proof = proofs[g.Name]
		if b[g.Name] == nil {
			b[g.Name] = &breaker{joined: s.joined}
		}
		b[g.Name].observe(now, s, settings)
	}
}

// sightings counts the pods of each group.
func sightings(cluster nodepool.Cluster, members []membership.Member) map[string]sighting {
	seen, counted, unschedulable := map[string]sighting{}, map[string]int{}, map[string]string{}
	for _, m := range members {
		s, known := seen[m.Group]
		if !known {
			s.joined, s.there = map[string]bool{}, map[string]bool{}
		}
		s.there[m.UID] = true
		if m.Failed && m.Node == nil && !m.Named {
			if s.failed == nil {
				s.failed = map[string]string{}
			}
			s.failed[m.UID] = failureOf(m)
		}
		if m.Counted() {
			counted[m.Group]++
			switch {
			case m.Joined():
				s.joined[m.UID] = true
			case m.Gated: // waits for quota, which says nothing about the group's nodes
			case !m.Dead():
				s.waiting++
			}
			if m.Unschedulable != "" {
				unschedulable[m.Group] = m.Unschedulable
			}
		}
		seen[m.Group] = s
	}
	for _, g := range cluster.Groups {
		missing := max(0, membership.GoalPods(g)-counted[g.Name])
		s := seen[g.Name]
		s.waiting += missing
		s.launched = g.Incoming.Launched
		s.why = whyStalled(unschedulable[g.Name], missing)
		seen[g.Name] = s
	}
	return seen
}

func failureOf(m membership.Member) string {
	if m.FailedWhy != "" {
		return m.Pod + ": " + m.FailedWhy
	}
	return m.Pod + ": its Ray container ended; see its log"
}

// pause restarts the clocks of waiting groups: while the GCS does not answer, nobody can be seen to join.
func (b breakers) pause(now time.Time) {
	for _, entry := range b {
		if !entry.stalledSince.IsZero() && !entry.open(now) {
			entry.stalledSince = now
		}
	}
}

func whyStalled(unschedulable string, missing int) string {
	switch {
	case unschedulable != "":
		return unschedulable
	case missing > 0:
		return fmt.Sprintf("%d pods were asked for and do not exist (refused by the API server, or an earlier group blocks the operator)", missing)
	}
	return "the pods run but do not reach Ray; see their logs"
}

func (b breakers) open(group string, now time.Time) bool {
	entry := b[group]
	return entry != nil && entry.open(now)
}

// givenUp reports whether nothing is expected of a pod that has not joined, or of one that is asked for and not seen yet:
// its group is broken off, and it is not one that has a node already while only nodes are short.
func (b breakers) givenUp(group string, placed bool, now time.Time) bool {
	return b.open(group, now) && !(placed && b[group].shortage)
}
