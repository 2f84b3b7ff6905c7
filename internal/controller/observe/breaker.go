package observe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// longestCooldown bounds the doubling pause of a failing group.
const longestCooldown = time.Hour

// Breaker keeps launches away from a group whose pods do not join Ray: out of stock, refused by the API server, or
// crashing. While it is open the group gets no launches, and those of its waiting pods that are not expected to join
// count for nothing, so that the next group serves the demand. It is an optimization: after a restart it opens again
// as soon as the proof is seen again.
//
// It opens on proof (Shortages) or, without proof, after AllocationTimeout without a pod that joined. Each pause is
// twice the one before; the pause halves again with every Cooldown without a failure. A pod that joins while nothing
// proves a shortage closes the breaker, and the group is as good as any other again.
type Breaker struct {
	// stalledSince is since when pods are expected and none has joined; zero while none is expected.
	stalledSince time.Time
	// joined are the pods that have joined Ray and still exist, by UID.
	joined    map[string]bool
	OpenUntil time.Time
	Cooldown  time.Duration
	Reason    string
	// shortage: it opened on proof that no node comes, so pods that have a node still count.
	shortage bool
	// failedAt is when it last opened; zero after a pod has joined since.
	failedAt time.Time
	// failures are the pods that failed before they joined, since the last one that joined.
	failures map[string]bool
}

// podCounts is what one reading shows of a group.
type podCounts struct {
	// joined are the UIDs of the pods that have joined, there those of all that exist; waiting counts those that are
	// expected to join.
	joined, there []string
	waiting       int
	// why says what the waiting pods seem to wait for; proof says that no node will come for them, or is empty.
	why, proof string
	// failed are the pods that failed before they joined, by UID, with the reason that Kubernetes gives.
	failed map[string]string
}

// observe adds one reading. patience is how long a pod may take to join Ray before its group counts as failing, and
// cooldown how long a failing group takes no launches at first.
func (b *Breaker) observe(now time.Time, s podCounts, patience, cooldown time.Duration) {
	joined, progress := make(map[string]bool, len(s.there)), false // one whose Ray node came back proves nothing
	for _, uid := range s.there {
		if b.joined[uid] {
			joined[uid] = true
		}
	}
	for _, uid := range s.joined {
		progress, joined[uid] = progress || !b.joined[uid], true
	}
	b.joined = joined
	if progress {
		b.failures = nil
	}
	if progress && s.proof == "" {
		b.failedAt = time.Time{}
		if b.Open(now) {
			b.OpenUntil = now
		}
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
		proof = b.tooManyFailures(s.failed)
	}
	switch {
	case b.Open(now):
	case proof != "":
		b.trip(now, cooldown, proof)
		b.shortage = s.proof != ""
	case !b.stalledSince.IsZero() && now.Sub(b.stalledSince) >= patience:
		b.trip(now, cooldown,
			fmt.Sprintf("no pod joined Ray within %s: %s", planner.Span(patience.Seconds()), s.why))
	}
}

// failuresForProof is how many pods in a row must fail before they join: a single one may be on a bad node or evicted.
const failuresForProof = 3

// tooManyFailures notes failed pods and returns a message when they are too many.
func (b *Breaker) tooManyFailures(failed map[string]string) string {
	last := ""
	for _, uid := range slices.Sorted(maps.Keys(failed)) {
		if b.failures == nil {
			b.failures = map[string]bool{}
		}
		b.failures[uid] = true
		last = failed[uid]
	}
	if last == "" || len(b.failures) < failuresForProof {
		return ""
	}
	return fmt.Sprintf("%d pods failed before they joined Ray: %s", len(b.failures), last)
}

// trip opens the breaker for twice as long as last time, less one halving for each quiet Cooldown since.
func (b *Breaker) trip(now time.Time, cooldown time.Duration, reason string) {
	if quiet := now.Sub(b.OpenUntil); !b.OpenUntil.IsZero() && quiet > 0 {
		b.Cooldown >>= min(int(quiet/cooldown), 62)
	}
	b.Cooldown = min(max(2*b.Cooldown, cooldown), longestCooldown)
	b.OpenUntil, b.failedAt = now.Add(b.Cooldown), now
	b.stalledSince = b.OpenUntil // the next chance starts after this pause
	b.failures, b.shortage = nil, false
	b.Reason = reason
}

func (b *Breaker) Open(now time.Time) bool { return now.Before(b.OpenUntil) }

// Breakers holds one breaker per group name.
type Breakers map[string]*Breaker

func (b Breakers) Observe(
	now time.Time, cluster nodepool.Cluster, members []Member, proofs map[string]string,
	patience, cooldown time.Duration,
) {
	seen := countPods(now, cluster, members)
	for _, g := range cluster.Groups {
		if !Reconciled(cluster, g.Name) {
			delete(b, g.Name) // nothing waits for its pods; the breaker starts anew later
			continue
		}
		s := seen[g.Name]
		s.proof = proofs[g.Name]
		if b[g.Name] == nil {
			b[g.Name] = &Breaker{}
		}
		b[g.Name].observe(now, s, patience, cooldown)
	}
}

// gangPatience is for how long a pod may be held by its gang before it counts as waiting: whether the rest of the gang
// finds room, a gang scheduler does not always say of each pod.
const gangPatience = 15 * time.Minute

func countPods(now time.Time, cluster nodepool.Cluster, members []Member) map[string]podCounts {
	seen, counted, unschedulable := map[string]podCounts{}, map[string]int{}, map[string]string{}
	for _, m := range members {
		s := seen[m.Group]
		s.there = append(s.there, m.UID)
		if m.Failed && m.Node == nil && !m.Named {
			if s.failed == nil {
				s.failed = map[string]string{}
			}
			s.failed[m.UID] = m.Pod + ": " + cmp.Or(m.FailedWhy, "its Ray container ended; see its log")
		}
		if m.Counted() {
			counted[m.Group]++
			switch {
			case m.Joined():
				s.joined = append(s.joined, m.UID)
			case m.Gated: // waits for quota, which says nothing about the group's nodes
			case m.GangHeld != "" && now.Sub(m.CreatedAt) < gangPatience: // as little does its gang, for a while
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
		missing := max(0, GoalPods(g)-counted[g.Name])
		if len(g.ScaleGates) > 0 {
			missing = 0 // the operator creates no pod before the gate is gone
		}
		s := seen[g.Name]
		s.waiting += missing
		s.why = whyStalled(unschedulable[g.Name], missing)
		seen[g.Name] = s
	}
	return seen
}

// Pause restarts the clocks of waiting groups: while the GCS does not answer, no join can be observed.
func (b Breakers) Pause(now time.Time) {
	for _, entry := range b {
		if !entry.stalledSince.IsZero() && !entry.Open(now) {
			entry.stalledSince = now
		}
	}
}

func whyStalled(unschedulable string, missing int) string {
	switch {
	case unschedulable != "":
		return unschedulable
	case missing > 0:
		return fmt.Sprintf(
			"%d requested pods do not exist (the API server refused them, or an earlier group blocks the operator)",
			missing,
		)
	}
	return "the pods run but do not reach Ray; see their logs"
}

func (b Breakers) Open(group string, now time.Time) bool {
	entry := b[group]
	return entry != nil && entry.Open(now)
}

// NothingExpected reports whether a pod that has not joined, or does not exist yet, is not expected to join: the
// breaker of its group is open, unless the pod has a node and only nodes are short.
func (b Breakers) NothingExpected(group string, placed bool, now time.Time) bool {
	return b.Open(group, now) && !(placed && b[group].shortage)
}
