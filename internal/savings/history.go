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
	// at is when it was last observed; zero if it has not been since a restart.
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

// Forget drops a RayCluster that was deleted, or about which another process decides.
func (h *History) Forget(key nodepool.ClusterKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clusters, key)
}

// unseen ends everything that was going on, because the last observation is too old.
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
