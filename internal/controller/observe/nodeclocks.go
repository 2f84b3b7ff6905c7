package observe

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// sameInstant is how far apart the idle times of two nodes may have started to count as started by one event. At the
// end of one job they were recorded 1 to 3 ms apart (docs/reference/facts.md#idle-time-and-jobs).
const sameInstant = 250 * time.Millisecond

const (
	// unseenGap is the longest pause between two readings after which an idle time continues.
	unseenGap = 5 * time.Second
	// unseen is how long Ray may be unreadable before nodes may have had another use in between. It is the age up to
	// which a reading counts elsewhere too (MaxDataAge).
	unseen = 10 * time.Second
)

// NodeClocks measures, for each living Ray node, for how long it has shown the same use, when it joined, and how long
// it has had no use. Readings may miss short interruptions. Losing it only delays what waits for it.
//
// Ray counts a node's idle time from the start of its raylet, which on a busy machine is long before the node can take
// work: a worker would be drained as idle while its work is being placed. So the idle time of a node that joined counts
// from when it was first seen. Nodes of the first reading have not joined, so a restart of Heliostat keeps nothing
// alive.
//
// Otherwise Ray's own idle time counts, except for one defect: Ray 2.52 restarts the idle time of all nodes, including
// the head, whenever any job ends, so that with short jobs no node is ever idle for long. So a restart that the head
// shares is no use of the node; any other is. DrainNode still has the last word. Other versions restart a node's idle
// time only when it is used, and the head may have worked at the same moment: there Ray's figure alone counts.
type NodeClocks struct {
	nodes    map[raydemand.NodeID]*nodeClock
	readings int       // how many there were
	read     time.Time // when the last reading was
}

type nodeClock struct {
	use       Use
	joined    bool // the node is none of the first reading
	usedSince time.Time
	seen      time.Time // when a reading first showed the node
	// unused is since when the node has had no use, and idleSince when Ray's own idle time began, as of the last
	// reading; zero while the node is not idle, and without the defect.
	unused, idleSince time.Time
	reading           int // the last one that showed the node
}

// JobsRestartIdleTimes reports whether that version of Ray is known to have the defect. It is in 2.52 and not in 2.60
// (docs/reference/facts.md#idle-time-and-jobs); an unknown version counts as without it.
func JobsRestartIdleTimes(version string) bool {
	minor, two := strings.CutPrefix(version, "2.")
	if end := strings.IndexFunc(minor, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		minor = minor[:end]
	}
	number, err := strconv.Atoi(minor)
	return two && err == nil && number < 60
}

// Observe adds one reading; defect says whether Ray restarts idle times when jobs end.
func (c *NodeClocks) Observe(now time.Time, nodes []raydemand.Node, defect bool) {
	first, gap, head := c.nodes == nil, now.Sub(c.read), headIdleStart(now, nodes)
	if first {
		c.nodes = make(map[raydemand.NodeID]*nodeClock, len(nodes))
	}
	c.readings++
	for i := range nodes {
		n := &nodes[i]
		if n.Status == raydemand.Dead {
			continue
		}
		known := c.nodes[n.ID]
		if known == nil {
			known = &nodeClock{seen: now, joined: !first}
			c.nodes[n.ID] = known
		}
		if use := UseOf(n); known.usedSince.IsZero() || gap > unseen || known.use != use {
			known.use, known.usedSince = use, now
		}
		start := now.Add(-n.Idle)
		switch restarted := start.Sub(known.idleSince) > sameInstant; {
		case !defect || n.Status != raydemand.Idle:
			known.unused, start = time.Time{}, time.Time{}
		case known.unused.IsZero() || gap > unseenGap || restarted && !sharesStart(start, head):
			known.unused = start
		}
		known.idleSince, known.reading = start, c.readings
	}
	maps.DeleteFunc(c.nodes, func(_ raydemand.NodeID, n *nodeClock) bool { return n.reading != c.readings })
	c.read = now
}

// Repeat notes a reading that shows the same as the last one, without the defect.
func (c *NodeClocks) Repeat(now time.Time) { c.read = now }

// PlacedShown is how long after a node has joined or become idle Ray shows the work that it places there in that
// moment: a second for the report of the node, and more on busy machines. Until its first report, a node counts as
// running.
const PlacedShown = 3 * time.Second

// UsedFor returns for how long a node has shown its present use; zero for a node that was not in the last reading.
func (c *NodeClocks) UsedFor(now time.Time, id raydemand.NodeID) time.Duration {
	if n := c.nodes[id]; n != nil {
		return now.Sub(n.usedSince)
	}
	return 0
}

// SeenFor returns for how long readings have shown a node; zero for one that was not in the last reading.
func (c *NodeClocks) SeenFor(now time.Time, id raydemand.NodeID) time.Duration {
	if n := c.nodes[id]; n != nil {
		return now.Sub(n.seen)
	}
	return 0
}

// IdleFor returns how long a node has been unused and could have taken work.
func (c *NodeClocks) IdleFor(now time.Time, node *raydemand.Node) time.Duration {
	idle, n := node.Idle, c.nodes[node.ID]
	if n != nil && !n.unused.IsZero() {
		idle = max(idle, c.read.Sub(n.unused))
	}
	if n != nil && n.joined {
		idle = min(idle, now.Sub(n.seen))
	}
	return idle
}

func headIdleStart(now time.Time, nodes []raydemand.Node) time.Time {
	for i := range nodes {
		if nodes[i].Head && nodes[i].Status == raydemand.Idle {
			return now.Add(-nodes[i].Idle)
		}
	}
	return time.Time{}
}

func sharesStart(start, headStart time.Time) bool {
	return !headStart.IsZero() && start.Sub(headStart).Abs() <= sameInstant
}
