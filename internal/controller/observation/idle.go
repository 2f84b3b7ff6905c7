package observation

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// sameInstant is how far apart the idle clocks of two nodes may have started to count as started by one event. The
// clocks of one job's end were recorded 1 to 3 ms apart (docs/reference/facts.md#idle-time-and-jobs).
const sameInstant = 250 * time.Millisecond

// unseenGap is the longest pause between two readings over which our clock may run on.
const unseenGap = 5 * time.Second

// IdleClock is our own account of how long a node has had no use. Ray's figure comes first; ours only bridges one
// defect: Ray 2.52 restarts the idle time of *all* nodes, the head's too, whenever any job ends, so that with short
// jobs no node would ever be idle for long. A restart that the head shares is therefore not a use; anything else is.
// DrainNode still has the last word. Other versions restart a node's idle time for a use only, and there the head may have
// worked at the same moment: Ray's figure alone counts.
type IdleClock struct {
	readAt time.Time
	since  map[raydemand.NodeID]time.Time // first reading of the present unused time
	starts map[raydemand.NodeID]time.Time // when Ray's own idle time began, as of the last reading
}

// JobsRestartIdleTimes reports whether a Ray of that version is known to have the defect. Seen on 2.52 and gone in 2.60
// (docs/reference/facts.md#idle-time-and-jobs); a version that is not told counts as without it.
func JobsRestartIdleTimes(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major == 2 && minor < 60
}

// Observe takes one reading in. Without the defect our account is Ray's.
func (c *IdleClock) Observe(now time.Time, nodes []raydemand.Node, defect bool) {
	if !defect || now.Sub(c.readAt) > unseenGap {
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

// Idle is how long the node has been without use by our account; zero for a node that is not idle.
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
