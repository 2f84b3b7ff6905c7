// Package savings records how the workers of RayClusters were used, and replays that with other settings: idle
// timeouts, minimums, warm capacity, sizes of workers and slices of GPUs. It says what each would have cost, and how
// long work would have waited. It must not ask for the time, know Kubernetes, Ray or the planner, or change anything.
// Its size is bounded: amounts for each day, not events.
package savings

import (
	"slices"
	"strings"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Timeouts are the idle timeouts that are replayed.
var Timeouts = [...]time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
	30 * time.Minute}

// Observation is one RayCluster at one moment.
type Observation struct {
	At      time.Time
	Cluster nodepool.ClusterKey
	// Groups are the worker groups, IdleTimeout is that of groups without their own. They are only read.
	Groups      []nodepool.WorkerGroup
	IdleTimeout time.Duration
	// Pods are the parts of all worker pods. Those of one pod follow each other.
	Pods []ledger.Pod
}

// timeout returns the idle timeout of a group.
func (o *Observation) timeout(g *nodepool.WorkerGroup) time.Duration {
	if g.IdleTimeout != nil {
		return *g.IdleTimeout
	}
	return o.IdleTimeout
}

// History records observations. Its methods are safe for concurrent use.
type History struct {
	mu       sync.Mutex // guards all below
	clusters map[nodepool.ClusterKey]*cluster
	// next is the buffer for the pods of an observation.
	next []seenPod
}

// New returns an empty history.
func New() *History { return &History{clusters: map[nodepool.ClusterKey]*cluster{}} }

// cluster is what is known of one RayCluster.
type cluster struct {
	// at is when it was last observed; zero if nobody has since a restart.
	at     time.Time
	groups []*group
	// pods are those of the last observation, sorted by name.
	pods []pod
}

// group is the record of a worker group.
type group struct {
	name    string
	buckets []Bucket
	// What follows is as of the last observation: the minimum and the timeout, how many pods there are that do not
	// leave, and how many of them would have been removed under each timeout.
	min, hosts int
	timeout    time.Duration
	live       int
	removed    [len(Timeouts)]int
	// swaps are workers that went although another one would have been removed in their place, for each timeout.
	swaps [len(Timeouts)]int
	// reserve and warm are the pods that the minimum and a policy keep idle.
	reserve, warm kept
	// ghosts are workers that were removed, and would still be there under a longer timeout.
	ghosts []ghost
}

// kept is how many idle workers something keeps, what they cost per second, and how many of them got work since.
type kept struct {
	pods, taken int
	rate        Sum
}

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

// Observe adds up the time since the last observation of the same RayCluster.
func (h *History) Observe(o Observation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.clusters[o.Cluster]
	if c == nil {
		c = &cluster{}
		h.clusters[o.Cluster] = c
	}
	passed := o.At.Sub(c.at)
	switch {
	case c.at.IsZero():
	case passed < 0 && passed > -ledger.Horizon:
		return // the clock was set back a little
	case passed < 0 || passed > ledger.Horizon:
		c.unseen()
	default:
		c.pass(o.At)
	}
	h.next = c.follow(&o, h.next[:0])
	clear(h.next) // the buffer must not keep names alive
	c.at = o.At
}

// unseen ends everything that was going on, because nobody has looked for too long.
func (c *cluster) unseen() {
	c.pods = c.pods[:0]
	for _, g := range c.groups {
		g.ghosts, g.removed, g.reserve, g.warm = nil, [len(Timeouts)]int{}, kept{}, kept{}
	}
}

// pass adds what the pods of the last observation have cost until a moment.
func (c *cluster) pass(until time.Time) {
	seconds := until.Sub(c.at).Seconds()
	for i := range c.pods {
		p := &c.pods[i]
		b := p.group.bucket(until)
		b.Observed = b.Observed.Plus(p.rate.times(seconds))
		switch p.phase {
		case leaving:
			b.LeavingSeconds += seconds
		case used:
			u := &b.Use[eighths(p.part)]
			*u = u.Plus(p.rate.times(seconds))
		case idle, reserve:
			p.rest(b, c.at, until)
		}
	}
	for _, g := range c.groups {
		g.reserve.pass(g, until, seconds, false)
		g.warm.pass(g, until, seconds, true)
		g.haunt(c.at, until)
	}
}

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

// pass adds what the workers that something keeps have cost, for each level to which it could have been reduced.
func (k *kept) pass(g *group, until time.Time, seconds float64, warm bool) {
	if k.pods == 0 {
		return
	}
	for i, level := range Levels {
		part := float64(min(k.pods, level)) / float64(k.pods)
		l := g.bucket(until).level(i, warm)
		l.Saved = l.Saved.Plus(k.rate.times(seconds * part))
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

// follow replaces the pods of the last observation by those of a new one, and counts what has changed. It returns the
// buffer that it was given.
func (c *cluster) follow(o *Observation, next []seenPod) []seenPod {
	c.regroup(o)
	for i := 0; i < len(o.Pods); {
		end := i + 1
		for end < len(o.Pods) && o.Pods[end].Pod == o.Pods[i].Pod {
			end++
		}
		if g := c.group(o.Pods[i].Group); g != nil {
			next = append(next, podOf(g, o.Pods[i:end]))
		}
		i = end
	}
	byName := func(a, b seenPod) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(next, byName) {
		slices.SortFunc(next, byName)
	}
	before := 0
	for i := range next {
		for ; before < len(c.pods) && c.pods[before].name < next[i].name; before++ {
			c.pods[before].end(o.At, leaving)
		}
		if before < len(c.pods) && c.pods[before].name == next[i].name {
			next[i].continues(&c.pods[before], o.At)
			before++
			continue
		}
		next[i].begins(o.At, !c.at.IsZero())
	}
	for ; before < len(c.pods); before++ {
		c.pods[before].end(o.At, leaving)
	}
	if len(next) < len(c.pods)/2 {
		c.pods = nil // a large buffer is not kept for few pods
	}
	clear(c.pods)
	c.pods = slices.Grow(c.pods[:0], len(next))
	for i := range next {
		c.pods = append(c.pods, next[i].pod)
	}
	c.count()
	return next
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

// count counts the pods of each group anew.
func (c *cluster) count() {
	for _, g := range c.groups {
		g.live = 0
		g.reserve.taken, g.warm.taken = 0, 0
		g.reserve.pods, g.warm.pods = 0, 0
		g.reserve.rate, g.warm.rate = Sum{}, Sum{}
	}
	for i := range c.pods {
		p := &c.pods[i]
		if p.phase != leaving && p.phase != away {
			p.group.live++
		}
		p.swap()
		switch p.phase {
		case reserve:
			p.group.reserve.add(p.rate)
		case warm:
			p.group.warm.add(p.rate)
		}
	}
	for _, g := range c.groups {
		g.swaps = [len(Timeouts)]int{}
	}
}

func (k *kept) add(rate Sum) {
	k.pods++
	k.rate = k.rate.Plus(rate)
}

// take counts that one of the workers got work. Those that a lower level would not have kept go last.
func (k *kept) take(g *group, at time.Time, warm bool) {
	left := k.pods - k.taken
	k.taken++
	for i, level := range Levels {
		if left <= level { // min(left, level) falls by one
			g.bucket(at).level(i, warm).Starts++
		}
	}
}

// regroup brings the groups up to date.
func (c *cluster) regroup(o *Observation) {
	for i := range o.Groups {
		spec := &o.Groups[i]
		g := c.group(spec.Name)
		if g == nil {
			g = &group{name: spec.Name}
			c.groups = append(c.groups, g)
		}
		g.hosts = max(spec.NumOfHosts, 1)
		g.min, g.timeout = spec.Min*g.hosts, o.timeout(spec)
	}
	if len(c.groups) > len(o.Groups) { // a group is gone
		c.groups = slices.DeleteFunc(c.groups, func(g *group) bool {
			return !slices.ContainsFunc(o.Groups, func(s nodepool.WorkerGroup) bool { return s.Name == g.name }) &&
				!slices.ContainsFunc(c.pods, func(p pod) bool { return p.group == g })
		})
	}
}

func (c *cluster) group(name string) *group {
	for _, g := range c.groups {
		if g.name == name {
			return g
		}
	}
	return nil
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
