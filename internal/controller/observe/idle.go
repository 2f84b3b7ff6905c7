package observe

import (
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// sameInstant is how far apart the idle times of two nodes may have started to count as started by one event. At the
// end of one job they were recorded 1 to 3 ms apart (docs/reference/facts.md#idle-time-and-jobs).
const sameInstant = 250 * time.Millisecond

// unseenGap is the longest pause between two readings after which the clock continues.
const unseenGap = 5 * time.Second

// IdleClock measures how long a node has had no use, beside Ray. Ray's own figure counts, except for one defect: Ray
// 2.52 restarts the idle time of all nodes, including the head, whenever any job ends, so that with short jobs no node
// is ever idle for long. So a restart that the head shares is no use of the node; any other is. DrainNode still has
// the last word. Other versions restart a node's idle time only when it is used, and the head may have worked at the
// same moment: there Ray's figure alone counts.
type IdleClock struct {
	readAt time.Time
	since  map[raydemand.NodeID]time.Time // first reading of the current unused time
	starts map[raydemand.NodeID]time.Time // when Ray's own idle time began, as of the last reading
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

// Observe adds one reading. Without the defect nothing is kept.
func (c *IdleClock) Observe(now time.Time, nodes []raydemand.Node, defect bool) {
	if !defect {
		*c = IdleClock{}
		return
	}
	if now.Sub(c.readAt) > unseenGap {
		c.since = nil
	}
	since := make(map[raydemand.NodeID]time.Time, len(nodes))
	starts := make(map[raydemand.NodeID]time.Time, len(nodes))
	headStart := headIdleStart(now, nodes)
	for i := range nodes {
		n := &nodes[i]
		if n.Status != raydemand.Idle {
			continue
		}
		starts[n.ID] = now.Add(-n.Idle)
		since[n.ID] = starts[n.ID]
		earlier, known := c.since[n.ID]
		if known && (!c.restarted(n.ID, starts[n.ID]) || sharesStart(starts[n.ID], headStart)) {
			since[n.ID] = earlier
		}
	}
	c.readAt, c.since, c.starts = now, since, starts
}

// Idle returns how long the node has been unused; zero for a node that is not idle, and without the defect.
func (c *IdleClock) Idle(id raydemand.NodeID) time.Duration {
	since, ok := c.since[id]
	if !ok {
		return 0
	}
	return c.readAt.Sub(since)
}

func (c *IdleClock) restarted(id raydemand.NodeID, start time.Time) bool {
	return start.Sub(c.starts[id]) > sameInstant
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
