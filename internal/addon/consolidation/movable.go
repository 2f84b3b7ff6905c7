package consolidation

import (
	"strings"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Candidates returns the workers that are used a little, and about which nothing but the actors on them is unknown. It
// costs little, and decides whether the actors are read at all.
//
// A multi-host replica is none, because all its hosts would have to move. Neither is a worker with a bundle of a
// placement group, with many primary copies of objects or with a task that waits for its arguments: nothing moves
// those. A pod that the user keeps node autoscalers from evicting is meant to stay.
func Candidates(v *observe.View, s *planner.Snapshot) []observe.Member {
	spare := map[string]int{}
	for i := range v.Cluster.Groups {
		g := &v.Cluster.Groups[i]
		spare[g.Name] = -g.Min
	}
	for _, m := range v.Members {
		if m.Counted() && m.Joined() {
			spare[m.Group]++
		}
	}
	running := map[string]bool{}
	for i := range s.Nodes {
		running[s.Nodes[i].Pod] = s.Nodes[i].State == planner.Running && s.Nodes[i].Refused.IsZero()
	}
	var all []observe.Member
	for _, m := range v.Members {
		g, known := v.Cluster.Group(m.Group)
		if !known || g.NumOfHosts > 1 || spare[m.Group] <= 0 || g.Replicas <= g.Min || !running[m.Pod] || !m.Joined() {
			continue
		}
		stays := !m.Counted() || m.Going != nil || m.NodeGone || m.Guard.By() == nodepool.GuardedByUser ||
			!observe.Deletable(v.Cluster, m.Worker)
		if !stays && m.Node.Status == raydemand.Running && len(m.Node.PlacedLabels) == 0 && plain(m.Node) &&
			share(m.Node) <= mostUse {
			all = append(all, m)
		}
	}
	return all
}

// copies is the part of an object store that primary copies may take on a worker that only Serve uses. Each replica
// leaves some (0.1 MB on Ray 2.60), which end with it. Copies of other owners would keep the draining node.
const copies = 0.01

// plain reports whether only tasks and actors make a node busy, beside few copies of objects.
func plain(n *raydemand.Node) bool {
	a := raydemand.ReadActivity(n.Activity)
	held := n.Total[raydemand.ObjectStoreMemory] - n.Available[raydemand.ObjectStoreMemory]
	few := held.Float() <= copies*n.Total[raydemand.ObjectStoreMemory].Float()
	return a.Workers && !a.Arguments && few && len(a.Unknown) == 0
}

// holdsObjects reports whether a node has primary copies of objects.
func holdsObjects(n *raydemand.Node) bool {
	return raydemand.ReadActivity(n.Activity).Objects ||
		n.Available[raydemand.ObjectStoreMemory] < n.Total[raydemand.ObjectStoreMemory]
}

// movable returns a worker as a move, and what needs another place, if everything on it can move. What is in use must
// be exactly what the actors hold: anything else is a task, and Ray does not say whether a task is retried
// (docs/reference/facts.md#tasks-and-their-retries).
func movable(m observe.Member, residents []*raydemand.Resident) (Move, []raydemand.Request, bool) {
	move := Move{Pod: m.Pod, Group: m.Group, Node: *m.Node, Needs: nodepool.ConsolidateServe, Used: share(m.Node)}
	held := raydemand.Bundle{}
	var work []raydemand.Request
	for _, r := range residents {
		if !r.Alive || r.Grouped || r.SelectorUnknown || r.Owns {
			return move, nil, false
		}
		held.Add(r.Resources)
		switch {
		case r.ServesProxy():
			continue // Serve ends it with the last replica, and starts one where replicas are
		case r.ServesReplica():
			move.Replicas++
		case r.Restarts == raydemand.RestartsAlways || r.Restarts > 0:
			move.Actors++
			move.Needs = nodepool.ConsolidateRestartable
		default:
			return move, nil, false
		}
		work = append(work, requestOf(r))
	}
	if len(work) == 0 || !held.Equal(inUse(m.Node)) ||
		move.Needs != nodepool.ConsolidateServe && holdsObjects(m.Node) {
		return move, nil, false
	}
	return move, work, true
}

// Restartable returns the nodes among those of members on which nothing runs but actors that Ray restarts elsewhere. A
// replica of Serve is not ended: Serve stops it itself.
func Restartable(members []observe.Member, residents []raydemand.Resident) map[raydemand.NodeID]bool {
	on := byNode(residents)
	nodes := map[raydemand.NodeID]bool{}
	for _, m := range members {
		if move, _, ok := movable(m, on[m.Node.ID]); ok && move.Replicas == 0 && plain(m.Node) &&
			!holdsObjects(m.Node) && len(m.Node.PlacedLabels) == 0 {
			nodes[m.Node.ID] = true
		}
	}
	return nodes
}

func byNode(residents []raydemand.Resident) map[raydemand.NodeID][]*raydemand.Resident {
	on := map[raydemand.NodeID][]*raydemand.Resident{}
	for i := range residents {
		on[residents[i].Node] = append(on[residents[i].Node], &residents[i])
	}
	return on
}

// requestOf returns what an actor needs elsewhere. One that holds nothing while it runs may need one CPU to be placed.
func requestOf(r *raydemand.Resident) raydemand.Request {
	bundle := r.Resources.Clone()
	if bundle.IsZero() {
		bundle = raydemand.Bundle{raydemand.CPU: raydemand.One}
	}
	request := raydemand.Request{Bundle: bundle, Count: 1}
	if len(r.Selector) > 0 {
		request.Selectors = []raydemand.Selector{r.Selector}
	}
	return request
}

// inUse returns what is in use on a node, without what only that node has.
func inUse(n *raydemand.Node) raydemand.Bundle {
	used := raydemand.Bundle{}
	for name := range n.Total {
		if name != raydemand.ObjectStoreMemory && !strings.HasPrefix(name, "node:") {
			used[name] = n.Total[name] - n.Available[name]
		}
	}
	for name := range n.Available {
		if strings.HasPrefix(name, raydemand.ImplicitPrefix) {
			used[name] = raydemand.One - n.Available[name]
		}
	}
	return used
}
