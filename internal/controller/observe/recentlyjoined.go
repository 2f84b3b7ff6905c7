package observe

import (
	"maps"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

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
