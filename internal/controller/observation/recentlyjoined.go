package observation

import (
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// RecentlyJoined remembers when nodes joined that were not in the reading before. Ray counts a node's idle time from
// the start of its raylet, which on a busy machine is long before the node can take work: a worker would be drained as
// idle while its work is being placed. So the idle time of a recently joined node counts from when it was first seen.
// Nodes of the first reading are not recently joined, so a restart of Heliostat keeps nothing alive.
type RecentlyJoined struct {
	seen   map[raydemand.NodeID]bool
	joined map[raydemand.NodeID]time.Time
}

// Observe adds one reading.
func (n *RecentlyJoined) Observe(now time.Time, nodes []raydemand.Node) {
	seen := make(map[raydemand.NodeID]bool, len(nodes))
	joined := map[raydemand.NodeID]time.Time{}
	for i := range nodes {
		id := nodes[i].ID
		if nodes[i].Status == raydemand.Dead {
			continue
		}
		seen[id] = true
		if at, known := n.joined[id]; known {
			joined[id] = at
		} else if n.seen != nil && !n.seen[id] {
			joined[id] = now
		}
	}
	n.seen, n.joined = seen, joined
}

// Bound limits a node's idle time to the time since it joined, if that was recently.
func (n *RecentlyJoined) Bound(now time.Time, id raydemand.NodeID, idle time.Duration) time.Duration {
	if at, known := n.joined[id]; known {
		return min(idle, now.Sub(at))
	}
	return idle
}
