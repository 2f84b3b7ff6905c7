package pools

import (
	"math"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// PodsOf says of each pool that could take a pod of this shape how many it holds and could hold, in the order of rooms;
// Bound is left open. A pool without nodes and without a declared shape may take any pod, unless its template or its
// name tells otherwise.
func PodsOf(p *podfit.PodShape, rooms []Room, places []podfit.Node) []Pods {
	byName := make(map[string]*poolCount, len(rooms))
	for i := range rooms {
		byName[rooms[i].Pool] = &poolCount{room: &rooms[i]}
	}
	var misses []podfit.Mismatch
	for i := range places {
		place := &places[i]
		count := byName[place.PoolName()]
		if count == nil {
			continue
		}
		misses = p.Mismatches(place, misses[:0])
		count.add(p, place, misses)
	}
	var list []Pods
	for i := range rooms {
		if pods, could := byName[rooms[i].Pool].of(&rooms[i], p); could {
			list = append(list, pods)
		}
	}
	return list
}

// of is false where the pool can take no pod and never will.
func (c *poolCount) of(room *Room, p *podfit.PodShape) (Pods, bool) {
	pods := Pods{Pool: room.Pool, ProfileFixed: c.fixed, PerNode: c.perNode, Holds: c.allHold(),
		MayAddNodes: room.MayAddNodes,
		Provisioned: room.Source == FromKarpenter}
	refuses := room.elsewhere(p) || room.Template != nil && room.Template.refuses(p) || c.unlike && !c.like
	switch {
	case c.perNode > 0:
		pods.MayAddPods = room.mayAddPods(p, c.perNode)
	case c.known && !room.Mixed || refuses:
		return pods, false
	default:
		c.cards = nil
		// A NodePool that fits and is full bounds the group; where nothing tells that the pool fits it is left out.
		if pods.MayAddPods = room.mayAddPods(p, 0); pods.MayAddPods != nil && *pods.MayAddPods == 0 &&
			room.Template == nil {
			return pods, false
		}
	}
	pods.Has, pods.Cards = c.allHave(room), c.cards
	return pods, true
}

// mayAddPods is how many pods the nodes hold that may still be added; nil where nothing bounds them. Where nodes may be
// of any size only the limits on resources tell: no node is added once they would be passed
// (docs/reference/facts.md#limits-of-a-nodepool), and a pod takes no more of a node than the node has.
func (r *Room) mayAddPods(p *podfit.PodShape, perNode int64) *int64 {
	most, bounded := int64(math.MaxInt64), false
	lower := func(n int64) { most, bounded = min(most, n), true }
	if r.MayAddNodes != nil {
		switch {
		case *r.MayAddNodes == 0:
			lower(0)
		case perNode > 0 && !r.Mixed:
			lower(podfit.CappedProduct(*r.MayAddNodes, perNode))
		}
	}
	for name, limit := range r.Limits {
		left := max(limit-r.Used[name], 0)
		switch want := p.Requests[name]; {
		case want > 0:
			lower(int64(left / want))
		case left == 0 && everyNodeHas[name]:
			lower(0)
		}
	}
	if !bounded {
		return nil
	}
	return &most
}

// everyNodeHas are resources of which any node has some, so that none is added when a limit on them is reached.
var everyNodeHas = map[string]bool{"cpu": true, "memory": true, "pods": true}
