package landing

import (
	"math"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// PodsOf returns, for each pool that could accept a pod of this shape, how many such pods it holds and could hold, in
// the order of rooms. It leaves Bound unset. A pool without nodes and without a declared shape may accept any pod,
// unless its template or its name shows otherwise.
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

// of returns false if the pool cannot accept a pod and never will.
func (c *poolCount) of(room *Room, p *podfit.PodShape) (Pods, bool) {
	pods := Pods{Pool: room.Pool, ProfileFixed: c.fixed, PerNode: c.fresh.pods, Holds: c.allHold(),
		MayAddNodes: room.MayAddNodes,
		Provisioned: room.Source == FromKarpenter}
	refuses := room.elsewhere(p) || room.Template != nil && room.Template.refuses(p) || c.unlike && !c.alike
	switch {
	case c.fresh.pods > 0:
		pods.MayAddPods = room.mayAddPods(p, c.fresh.pods)
	case c.fresh.declared && pods.Holds > 0 && !room.Mixed:
		pods.MayAddPods = new(int64) // its new nodes are not like those that hold pods
	case c.known && !room.Mixed || refuses:
		return pods, false
	default:
		c.cards = nil
		// A full NodePool that fits the pod bounds the group. If nothing shows that the pool fits, it is left out.
		if pods.MayAddPods = room.mayAddPods(p, 0); pods.MayAddPods != nil && *pods.MayAddPods == 0 &&
			room.Template == nil {
			return pods, false
		}
	}
	pods.Has, pods.Cards = c.allHave(room), c.cards
	return pods, true
}

// mayAddPods returns how many pods fit on the nodes that may still be added; nil if there is no bound. If nodes may be
// of any size, only the limits on resources apply: no node is added that would exceed them
// (docs/reference/facts.md#limits-of-a-nodepool), and a pod uses no more of a node than the node has.
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

// everyNodeHas are resources that every node has, so no node is added when a limit on one of them is reached.
var everyNodeHas = map[string]bool{"cpu": true, "memory": true, "pods": true}
