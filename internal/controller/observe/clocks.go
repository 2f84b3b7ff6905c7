package observe

import (
	"maps"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Clocks remembers since when pods and demand are in their present state. It only delays reductions, so losing it is
// safe.
type Clocks struct {
	unjoined map[string]time.Time // pod → first seen without a Ray node
	dead     map[string]time.Time // pod → first seen with a dead Ray node
	going    map[string]time.Time // pod → first seen as about to lose its machine
	// quiet is since when nothing is requested and no node is about to lose its machine; zero while something is.
	quiet time.Time
}

// Observe adds one complete reading. kept says whether anything is requested over REST.
func (w *Clocks) Observe(now time.Time, members []Member, demand raydemand.Demand, kept bool) {
	unjoined, dead, going := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	moving := false // a replacement for the work of such a node is needed, though nothing is requested
	for _, m := range members {
		moving = moving || m.Goes() && m.Joined()
		if m.Goes() {
			going[m.Pod] = earlier(w.going, m.Pod, now)
		}
		switch {
		case m.Dead():
			dead[m.Pod] = earlier(w.dead, m.Pod, now)
		case m.Node == nil:
			unjoined[m.Pod] = earlier(w.unjoined, m.Pod, now)
		}
	}
	w.unjoined, w.dead, w.going = unjoined, dead, going
	switch {
	case kept || moving || len(demand.Requests)+len(demand.Gangs)+len(demand.Constraint) > 0:
		w.quiet = time.Time{}
	case w.quiet.IsZero():
		w.quiet = now
	}
}

// Pause restarts all clocks after a missing reading, during which nothing was observed.
func (w *Clocks) Pause() { *w = Clocks{} }

func (w *Clocks) UnjoinedFor(pod string, now time.Time) time.Duration {
	return lasted(w.unjoined[pod], now)
}

func (w *Clocks) DeadFor(pod string, now time.Time) time.Duration { return lasted(w.dead[pod], now) }

func (w *Clocks) GoingFor(pod string, now time.Time) time.Duration { return lasted(w.going[pod], now) }

func (w *Clocks) QuietFor(now time.Time) time.Duration { return lasted(w.quiet, now) }

func earlier(known map[string]time.Time, name string, now time.Time) time.Time {
	if at, ok := known[name]; ok {
		return at
	}
	return now
}

func lasted(since, now time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return now.Sub(since)
}

// Use is what a node shows of its use.
type Use int

const (
	// Unused: nothing is in use.
	Unused Use = iota
	// InUse: something is in use, but no task or actor runs. A placement group reserves it, or work is being placed.
	InUse
	// Works: tasks or actors run.
	Works
)

// UseOf returns what a node shows.
func UseOf(n *raydemand.Node) Use {
	switch {
	case n.Status == raydemand.Idle:
		return Unused
	case raydemand.ReadActivity(n.Activity).Workers:
		return Works
	}
	return InUse
}

// unseen is how long Ray may be unreadable before nodes may have had another use in between. It is the age up to which
// a reading counts elsewhere too (MaxDataAge).
const unseen = 10 * time.Second

// UseClock measures for how long nodes have shown the same use without interruption. Its readings may miss short
// interruptions. Losing it only delays what waits for it.
type UseClock struct {
	nodes    map[raydemand.NodeID]useSince
	readings int       // how many there were
	read     time.Time // when the last reading was
}

type useSince struct {
	use     Use
	since   time.Time
	reading int // the last one that showed the node
}

// Observe adds one reading.
func (c *UseClock) Observe(now time.Time, nodes []raydemand.Node) {
	if c.nodes == nil || now.Sub(c.read) > unseen {
		c.nodes = make(map[raydemand.NodeID]useSince, len(nodes))
	}
	c.readings++
	for i := range nodes {
		n := &nodes[i]
		last, known := c.nodes[n.ID]
		if use := UseOf(n); !known || last.use != use {
			last = useSince{use: use, since: now}
		}
		last.reading = c.readings
		c.nodes[n.ID] = last
	}
	maps.DeleteFunc(c.nodes, func(_ raydemand.NodeID, u useSince) bool { return u.reading != c.readings })
	c.read = now
}

// Repeat notes a reading that shows the same as the last one.
func (c *UseClock) Repeat(now time.Time) { c.read = now }

// For returns for how long a node has shown its present use; zero for a node that was not in the last reading.
func (c *UseClock) For(now time.Time, id raydemand.NodeID) time.Duration {
	if shown, known := c.nodes[id]; known {
		return now.Sub(shown.since)
	}
	return 0
}

// RecentlyJoined remembers when nodes joined that were not in the reading before. Ray counts a node's idle time from
// the start of its raylet, which on a busy machine is long before the node can take work: a worker would be drained as
// idle while its work is being placed. So the idle time of a recently joined node counts from when it was first seen.
// Nodes of the first reading are not recently joined, so a restart of Heliostat keeps nothing alive.
type RecentlyJoined struct {
	// nodes are those of the last reading, with the number of the last reading that showed them; joined is when those
	// joined that were not in the first one.
	nodes    map[raydemand.NodeID]int
	joined   map[raydemand.NodeID]time.Time
	readings int
}

// Observe adds one reading.
func (n *RecentlyJoined) Observe(now time.Time, nodes []raydemand.Node) {
	if n.nodes == nil {
		n.nodes = make(map[raydemand.NodeID]int, len(nodes))
		n.joined = map[raydemand.NodeID]time.Time{}
	}
	n.readings++
	for i := range nodes {
		if nodes[i].Status == raydemand.Dead {
			continue
		}
		if _, known := n.nodes[nodes[i].ID]; !known && n.readings > 1 {
			n.joined[nodes[i].ID] = now
		}
		n.nodes[nodes[i].ID] = n.readings
	}
	maps.DeleteFunc(n.nodes, func(_ raydemand.NodeID, reading int) bool { return reading != n.readings })
	maps.DeleteFunc(n.joined, func(id raydemand.NodeID, _ time.Time) bool { return n.nodes[id] == 0 })
}

// Bound limits a node's idle time to the time since it joined, if that was recently.
func (n *RecentlyJoined) Bound(now time.Time, id raydemand.NodeID, idle time.Duration) time.Duration {
	if at, recently := n.joined[id]; recently {
		return min(idle, now.Sub(at))
	}
	return idle
}
