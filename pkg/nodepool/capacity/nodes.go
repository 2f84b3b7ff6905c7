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

// NodeGroup is what the number of warm nodes of a worker group depends on.
type NodeGroup struct {
	// Hosts is how many pods a replica has, at least 1.
	Hosts int64
	// Max is the most replicas of the group, Wanted how many it is to have now.
	Max, Wanted int64
	// Closed says why the group launches no workers; empty if it may.
	Closed string
	// Room is how many pods fit on nodes that exist, beyond pods that wait for a node; nil if unknown.
	Room *int64
	// Provided: the node autoscaler says that it keeps the nodes. Answer is what it says; empty if nothing yet.
	Provided bool
	Answer   string
}

// NodesPlan is what becomes of one entry.
type NodesPlan struct {
	// Name is where the entry is in the policy, such as keepWarmNodes[0].
	Name  string `json:"name"`
	Group string `json:"group"`
	// Count is for how many workers the entry wants nodes, Asked for how many they are asked for.
	Count int64 `json:"count"`
	Asked int64 `json:"asked"`
	// Ready is how many of these workers would find room on nodes that exist; nil if that is unknown.
	Ready *int64 `json:"ready,omitempty"`
	// Schedule describes the schedule that gives the count; empty if none does.
	Schedule string `json:"schedule,omitempty"`
	Code     string `json:"code"`
	Message  string `json:"message"`
}

// NodesWanted says for how many workers nodes are kept at a moment.
type NodesWanted struct {
	At time.Time
	// Groups are the worker groups by name.
	Groups map[string]NodeGroup
	// Unavailable says why no node can be asked for; empty if nodes can.
	Unavailable string
}

// PlanNodes returns what becomes of each entry with a count above 0. Nodes are asked for no more workers than the group
// may still launch, whatever the entries add up to: the first entries come first.
func (p *Policy) PlanNodes(w NodesWanted) []NodesPlan {
	var all []NodesPlan
	asked := map[string]int64{}
	for i := range p.KeepWarmNodes {
		entry := &p.KeepWarmNodes[i]
		row := NodesPlan{Name: fmt.Sprintf("keepWarmNodes[%d]", i), Group: entry.Group, Code: NodesWarm}
		if row.Count, row.Schedule = countAt(entry.Count, entry.Schedules, w.At); row.Count <= 0 {
			continue
		}
		if row.Schedule != "" {
			row.Code = NodesSchedule
		}
		group, known := w.Groups[entry.Group]
		why := w.refusal(entry.Group, known, &group)
		if why.Code == "" {
			before := asked[entry.Group]
			left := max(group.Max-group.Wanted-before, 0)
			row.Asked = min(row.Count, left)
			asked[entry.Group] += row.Asked
			row.Ready = group.ready(before, row.Asked)
			if row.Asked < row.Count {
				why = NodesPlan{Code: NodesAtMax, Message: fmt.Sprintf(
					"the group has or launches %d of at most %d workers", group.Wanted, group.Max)}
			} else if !group.Provided {
				why = NodesPlan{Code: NodesWaiting, Message: "the node autoscaler has not answered"}
				if group.Answer != "" {
					why.Message = "the node autoscaler says " + group.Answer
				}
			}
		}
		row.Message = row.text()
		if why.Code != "" {
			row.Code, row.Message = why.Code, row.Message+": "+why.Message
		}
		all = append(all, row)
	}
	return all
}

// refusal returns a code and a message if nodes of a group are not asked for at all.
func (w *NodesWanted) refusal(name string, known bool, group *NodeGroup) NodesPlan {
	switch {
	case !known:
		return NodesPlan{Code: NodesNoGroup, Message: fmt.Sprintf("there is no worker group %q", name)}
	case w.Unavailable != "":
		return NodesPlan{Code: NodesUnavailable, Message: w.Unavailable}
	case group.Closed != "":
		return NodesPlan{Code: NodesUnavailable, Message: group.Closed}
	}
	return NodesPlan{}
}

// ready returns how many of the asked workers find room, beyond those of earlier entries.
func (g *NodeGroup) ready(before, asked int64) *int64 {
	if g.Room == nil {
		return nil
	}
	return new(min(asked, max(*g.Room/max(g.Hosts, 1)-before, 0)))
}

// text says what is asked for and what is there: nodes for 2 of 3 workers of group gpu, room for 1 now.
func (n *NodesPlan) text() string {
	text := fmt.Sprintf("nodes for %d of %d workers of group %s", n.Asked, n.Count, n.Group)
	if n.Ready != nil && n.Asked > 0 {
		text += fmt.Sprintf(", room for %d now", *n.Ready)
	}
	if n.Schedule != "" {
		text += ", by the schedule " + n.Schedule
	}
	return text
}

// NodePods adds up, by group, for how many pods nodes are asked for.
func NodePods(plans []NodesPlan, groups map[string]NodeGroup) map[string]int64 {
	pods := map[string]int64{}
	for i := range plans {
		if n := plans[i].Asked; n > 0 {
			pods[plans[i].Group] += n * max(groups[plans[i].Group].Hosts, 1)
		}
	}
	return pods
}
