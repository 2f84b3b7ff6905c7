package capacity

import (
	"fmt"
	"time"
)

// WarmNodes is a number of workers of a group for which nodes are ready that no pod uses, on top of nodes in use.
// Entries for one group add up.
type WarmNodes struct {
	// Group is the worker group. In a multi-host group a worker is a whole replica.
	Group string `json:"group"`
	// Count applies while no schedule does.
	Count     int64      `json:"count"`
	Schedules []Schedule `json:"schedules,omitempty"`
}

// Codes of what becomes of an entry.
const (
	// NodesWarm: the nodes are asked for. NodesSchedule: the same, and a schedule says for how many workers.
	NodesWarm     = "warm"
	NodesSchedule = "schedule"
	// NodesWaiting: they are asked for, and the node autoscaler says that it cannot provide them, or nothing yet.
	NodesWaiting = "nodes_waiting"
	// NodesAtMax: the group could not launch more workers, so they would be of no use.
	NodesAtMax = "at_max"
	// NodesNoGroup: there is no such group.
	NodesNoGroup = "no_group"
	// NodesUnavailable: no node can be asked for, whatever the group: the message says why.
	NodesUnavailable = "nodes_unavailable"
)

// NodesPlan is what becomes of one entry.
type NodesPlan struct {
	// Name is where the entry is in the policy, such as keepWarmNodes[0].
	Name  string `json:"name"`
	Group string `json:"group"`
	// Count is for how many workers the entry wants nodes, Asked for how many they are asked for.
	Count int64 `json:"count"`
	Asked int64 `json:"asked"`
	// Schedule describes the schedule that gives the count; empty if none does.
	Schedule string `json:"schedule,omitempty"`
	Code     string `json:"code"`
	Message  string `json:"message"`
}

// WarmNodesAt returns what the entries with a count above 0 want at a moment.
func (p *Policy) WarmNodesAt(at time.Time) (all []NodesPlan) {
	for i := range p.KeepWarmNodes {
		entry := &p.KeepWarmNodes[i]
		row := NodesPlan{Name: fmt.Sprintf("keepWarmNodes[%d]", i), Group: entry.Group, Code: NodesWarm}
		if row.Count, row.Schedule = countAt(entry.Count, entry.Schedules, at); row.Schedule != "" {
			row.Code = NodesSchedule
		}
		if row.Count > 0 {
			all = append(all, row)
		}
	}
	return all
}
