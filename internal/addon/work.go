package addon

import (
	"context"
	"errors"
	"maps"
	"strings"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// copies is the part of an object store that primary copies may take on a worker that only Serve uses. Each replica
// leaves some (0.1 MB on Ray 2.60), which end with it. Copies of other owners would keep the draining node.
const copies = 0.01

// Plain reports whether only tasks and actors make a node busy, beside few copies of objects.
func Plain(n *raydemand.Node) bool {
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

// Work is what runs on a worker and can move.
type Work struct {
	// Needs is the least value of the annotation consolidate that lets it move.
	Needs nodepool.Consolidate
	// Replicas are those of Serve, Actors all others.
	Replicas, Actors int
	// Requests are what it needs elsewhere.
	Requests []raydemand.Request
}

// MovableWork returns what on a node can move, and whether that is all that runs there. What is in use must be exactly
// what the actors hold: anything else is a task, and Ray does not say whether a task is retried
// (docs/reference/facts.md#tasks-and-their-retries).
func MovableWork(n *raydemand.Node, residents []*raydemand.Resident) (Work, bool) {
	work, all := Work{Needs: nodepool.ConsolidateServe}, true
	held := raydemand.Bundle{}
	for _, r := range residents {
		if !r.Alive || r.Grouped || r.SelectorUnknown || r.Owns {
			all = false
			continue
		}
		held.Add(r.Resources)
		switch {
		case r.ServesProxy():
			continue // Serve ends it with the last replica, and starts one where replicas are
		case r.ServesReplica():
			work.Replicas++
		case r.Restarts == raydemand.RestartsAlways || r.Restarts > 0:
			work.Actors++
			work.Needs = nodepool.ConsolidateRestartable
		default:
			all = false
			continue
		}
		work.Requests = append(work.Requests, requestOf(r))
	}
	return work, all && len(work.Requests) > 0 && held.Equal(inUse(n)) &&
		(work.Needs == nodepool.ConsolidateServe || !holdsObjects(n))
}

// Restartable returns the nodes among those of members on which nothing runs but actors that Ray restarts elsewhere. A
// replica of Serve is not ended: Serve stops it itself.
func Restartable(members []observe.Member, residents []raydemand.Resident) map[raydemand.NodeID]bool {
	on := ByNode(residents)
	nodes := map[raydemand.NodeID]bool{}
	for _, m := range members {
		if work, ok := MovableWork(m.Node, on[m.Node.ID]); ok && work.Replicas == 0 && Plain(m.Node) &&
			!holdsObjects(m.Node) && len(m.Node.PlacedLabels) == 0 {
			nodes[m.Node.ID] = true
		}
	}
	return nodes
}

// Call makes one call to the head.
func Call[T any](ctx context.Context, loop Loop, call func(Ray, context.Context) (T, error)) (answer T, err error) {
	ray := loop.Ray()
	if ray == nil {
		return answer, errors.New("there is no connection to the head")
	}
	ctx, cancel := context.WithTimeout(ctx, loop.CallTimeout())
	defer cancel()
	return call(ray, ctx)
}

// LookAtOverdue adds to the view which of some draining workers, whose deadline is over, may end because nothing runs
// there but actors that Ray restarts elsewhere. Ray does not end them: it lets what runs on a draining node continue.
// It returns the actors that have a place on a node; nil if they cannot be read.
func LookAtOverdue(ctx context.Context, loop Loop, v *observe.View, due []observe.Member) []raydemand.Resident {
	residents, err := Call(ctx, loop, Ray.Residents)
	if err != nil {
		loop.Log().WarnContext(ctx, "cannot read the actors", "cluster", v.Cluster.Key.String(), "err", err)
		return nil
	}
	if v.Restartable == nil {
		v.Restartable = map[raydemand.NodeID]bool{}
	}
	maps.Copy(v.Restartable, Restartable(due, residents))
	return residents
}

// ByNode sorts actors by their nodes.
func ByNode(residents []raydemand.Resident) map[raydemand.NodeID][]*raydemand.Resident {
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
