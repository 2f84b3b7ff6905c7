package controller

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// longestCooldown bounds the doubling pause of a failing group.
const longestCooldown = time.Hour

// breaker breaks a group off for a while when its pods do not join Ray: unschedulable, refused by the API server, or
// crashing. While it is open the group takes no launches and its waiting pods count for nothing, so that the next
// group serves the demand. It is an optimisation: lost with the process, it opens again one AllocationTimeout later.
type breaker struct {
	// stalledSince is since when pods are waited for and none has joined; zero while none is waited for.
	stalledSince time.Time
	joined       int
	openUntil    time.Time
	cooldown     time.Duration
	reason       string
}

// observe takes in how many pods of the group have joined and how many are waited for.
func (b *breaker) observe(now time.Time, joined, waiting int, why string, timeout, cooldown time.Duration) {
	progress := joined > b.joined
	b.joined = joined
	if progress {
		b.openUntil, b.cooldown = time.Time{}, 0
	}
	switch {
	case waiting == 0 || progress:
		b.stalledSince = time.Time{}
		if waiting > 0 {
			b.stalledSince = now
		}
	case b.stalledSince.IsZero():
		b.stalledSince = now
	}
	if b.open(now) || b.stalledSince.IsZero() || now.Sub(b.stalledSince) < timeout {
		return
	}
	b.cooldown = min(max(2*b.cooldown, cooldown), longestCooldown)
	b.openUntil = now.Add(b.cooldown)
	b.stalledSince = b.openUntil // the next chance starts when this pause ends
	b.reason = fmt.Sprintf("no pod joined Ray within %v: %s; no launches until %s",
		timeout, why, b.openUntil.UTC().Format(time.TimeOnly))
}

func (b *breaker) open(now time.Time) bool { return now.Before(b.openUntil) }

// breakers holds one breaker per group name.
type breakers map[string]*breaker

func (b breakers) observe(now time.Time, cluster nodepool.Cluster, members []member, config Config) {
	joined, unjoined, counted := map[string]int{}, map[string]int{}, map[string]int{}
	why := map[string]string{}
	for _, m := range members {
		if !m.counted() {
			continue
		}
		counted[m.Group]++
		switch {
		case m.joined():
			joined[m.Group]++
		case !m.dead():
			unjoined[m.Group]++
		}
		if m.Unschedulable != "" {
			why[m.Group] = m.Unschedulable
		}
	}
	for _, g := range cluster.Groups {
		if !tended(cluster, g.Name) {
			delete(b, g.Name) // its pods are nobody's to wait for, and afterwards it starts anew
			continue
		}
		entry := b[g.Name]
		if entry == nil {
			entry = &breaker{joined: joined[g.Name]}
			b[g.Name] = entry
		}
		missing := max(0, goalPods(g)-counted[g.Name])
		entry.observe(now, joined[g.Name], unjoined[g.Name]+missing, whyStalled(why[g.Name], missing),
			config.AllocationTimeout, config.BreakerCooldown)
	}
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
