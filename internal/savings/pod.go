package savings

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/ledger"
)

// phase is what a pod is there for, as a whole.
type phase uint8

const (
	// away: it does not count, because it failed or nothing is known of it.
	away phase = iota
	starting
	// used: work holds a part of it.
	used
	// idle: only its timeout keeps it. reserve: the minimum keeps it. warm: a policy does. held: something else does.
	idle
	reserve
	warm
	held
	leaving
)

// resting reports whether the idle timeout runs, or the minimum alone keeps a worker after it.
func (p phase) resting() bool { return p == idle || p == reserve }

// pod is one worker pod as it was observed last.
type pod struct {
	name  string
	group *group
	rate  Sum
	// since is when it began to rest.
	since time.Time
	// part is the part that work holds.
	part  float64
	phase phase
	// gone says, for each timeout, that it would have been removed by now.
	gone [len(Timeouts)]bool
}

// seenPod is one worker pod as it is observed now.
type seenPod struct {
	pod
	// created and bound are zero if they are unknown.
	created, bound time.Time
}

// ghost is a worker that was removed.
type ghost struct {
	since, removed time.Time
	rate           Sum
	// stays says, for each timeout, that it would still be there.
	stays [len(Timeouts)]bool
}

// mostGhosts bounds the ghosts of a group. The oldest go first: what a longer timeout would have cost is then too low.
const mostGhosts = 512

// eighths returns how many eighths of a worker are in use, rounded up.
func eighths(part float64) int {
	const rounding = 1e-6
	n := int(part*Eighths - rounding)
	return max(0, min(n+1, Eighths))
}

// rest adds what a worker that rests costs beyond each timeout that is over.
func (p *pod) rest(b *Bucket, from, until time.Time) {
	g := p.group
	for i, timeout := range Timeouts {
		begins := from
		if !p.gone[i] {
			over := p.since.Add(timeout)
			if p.phase != idle || !over.Before(until) || g.live-g.removed[i] <= g.min {
				continue
			}
			p.gone[i] = true
			g.removed[i]++
			begins = later(over, from)
		}
		w := b.timeout(i)
		w.Saved = w.Saved.Plus(p.rate.times(until.Sub(begins).Seconds()))
	}
}

// haunt adds what removed workers would have cost under longer timeouts.
func (g *group) haunt(from, until time.Time) {
	staying := g.ghosts[:0]
	for _, gh := range g.ghosts {
		for i, timeout := range Timeouts {
			if !gh.stays[i] {
				continue
			}
			ends := gh.since.Add(timeout)
			if seconds := earlier(ends, until).Sub(later(from, gh.removed)).Seconds(); seconds > 0 {
				r := g.bucket(until).timeout(i)
				r.Added = r.Added.Plus(gh.rate.times(seconds))
			}
			gh.stays[i] = ends.After(until)
		}
		if gh.stays != [len(Timeouts)]bool{} {
			staying = append(staying, gh)
		}
	}
	g.ghosts = staying
}

// swap lets a worker stay under a timeout instead of one that went and would have stayed.
func (p *pod) swap() {
	for i := range Timeouts {
		if p.gone[i] && p.group.swaps[i] > 0 {
			p.gone[i] = false
			p.group.swaps[i]--
			p.group.removed[i]--
		}
	}
}

// podOf returns a pod by its parts.
func podOf(g *group, parts []ledger.Pod) seenPod {
	p := seenPod{pod: pod{name: parts[0].Pod, group: g}, created: parts[0].Created, bound: parts[0].Bound}
	for i := range parts {
		part := &parts[i]
		p.rate = p.rate.Plus(sumOf(part.Rate()))
		switch part.Cause {
		case ledger.Used:
			p.phase, p.part = used, p.part+part.Part
		case ledger.Reserved:
			if part.Why == "placement_group" { // it is the part that is in use
				p.phase, p.part = used, p.part+part.Part
			}
			p.be(held)
		case ledger.Idle:
			switch part.Why {
			case "idle_timeout", "no_idle_timeout":
				p.be(idle)
			case "minimum":
				p.be(reserve)
			default:
				p.be(held)
			}
		case ledger.Warm:
			p.be(warm)
		case ledger.Starting:
			p.be(starting)
		case ledger.Leaving:
			p.phase = leaving
		}
	}
	return p
}

// be sets the phase of a pod whose other parts have none.
func (p *pod) be(what phase) {
	if p.phase == away {
		p.phase = what
	}
}

// begins notes a pod that was not there before. A worker that a longer timeout would have kept would have taken its
// place.
func (p *pod) begins(at time.Time, seen bool) {
	if p.phase.resting() {
		p.since = at
	}
	if p.phase != starting || !seen {
		return
	}
	g := p.group
	for i := range Timeouts {
		for n := len(g.ghosts) - 1; n >= 0; n-- {
			if g.ghosts[n].stays[i] {
				g.ghosts[n].stays[i] = false
				g.bucket(at).timeout(i).Spared++
				break
			}
		}
	}
}

// continues takes over what is known of a pod, and counts what has changed.
func (p *seenPod) continues(before *pod, at time.Time) {
	switch {
	case before.phase.resting() && p.phase.resting():
		p.since, p.gone = before.since, before.gone
	case p.phase.resting():
		p.since = at
	}
	if before.phase == p.phase {
		return
	}
	g := p.group
	if before.phase == starting && p.phase != leaving && p.phase != away && !p.created.IsZero() {
		b := g.bucket(at)
		b.Starts++
		b.StartSeconds += max(at.Sub(p.created).Seconds(), 0)
		if !p.bound.IsZero() {
			b.StartPaidSeconds += max(at.Sub(later(p.bound, p.created)).Seconds(), 0)
		}
	}
	if p.phase == leaving && before.phase != starting && before.phase != away {
		g.bucket(at).Leaves++
	}
	if before.phase.resting() && !p.phase.resting() {
		before.end(at, p.phase)
	}
	if p.phase == used && before.phase == reserve {
		g.reserve.take(g, at, false)
	}
	if p.phase == used && before.phase == warm {
		g.warm.take(g, at, true)
	}
}

// end ends the rest of a worker, because it gets work, or because it goes.
func (p *pod) end(at time.Time, why phase) {
	if !p.phase.resting() {
		return
	}
	g := p.group
	goes := why == leaving
	var stays [len(Timeouts)]bool
	for i, timeout := range Timeouts {
		switch {
		case p.gone[i]:
			g.removed[i]--
			if !goes {
				g.bucket(at).timeout(i).Starts++
			}
		case goes && p.since.Add(timeout).Before(at):
			g.swaps[i]++
		case goes && p.phase == idle && g.timeout > 0 && at.Sub(p.since) >= g.timeout:
			stays[i] = true
		}
	}
	p.gone = [len(Timeouts)]bool{}
	if stays != [len(Timeouts)]bool{} {
		if len(g.ghosts) == mostGhosts {
			g.ghosts = slices.Delete(g.ghosts, 0, 1)
		}
		g.ghosts = append(g.ghosts, ghost{p.since, at, p.rate, stays})
	}
}
