package landing

import (
	"math"
)

// pods returns how many pods the pool holds and could hold; false if it cannot accept a pod and never will. A pool
// without nodes and without a declared shape may accept any pod, unless its template or its name shows otherwise.
func (v *poolView) pods(p *PodShape) (Pods, bool) {
	room := v.room
	pods := Pods{Pool: room.Pool, ProfileFixed: v.fixed, PerNode: v.fresh.pods, Holds: v.allHold(),
		MayAddNodes: room.MayAddNodes,
		Provisioned: room.Source == FromKarpenter}
	refuses := room.elsewhere(p) || room.Template != nil && room.Template.refuses(p) || v.unlike && !v.alike
	switch {
	case v.fresh.pods > 0:
		pods.MayAddPods = room.mayAddPods(p, v.fresh.pods)
	case v.fresh.declared && pods.Holds > 0 && !room.Mixed:
		pods.MayAddPods = new(int64) // its new nodes are not like those that hold pods
	case (v.nodes > 0 || v.declared) && !room.Mixed || refuses:
		return pods, false
	default:
		v.cards = nil
		// A full NodePool that fits the pod bounds the group. If nothing shows that the pool fits, it is left out.
		if pods.MayAddPods = room.mayAddPods(p, 0); pods.MayAddPods != nil && *pods.MayAddPods == 0 &&
			room.Template == nil {
			return pods, false
		}
	}
	pods.Has, pods.Cards = v.allHave(), v.cards
	return pods, true
}

// mayAddPods returns how many pods fit on the nodes that may still be added; nil if there is no bound. If nodes may be
// of any size, only the limits on resources apply: no node is added that would exceed them
// (docs/reference/facts.md#limits-of-a-nodepool), and a pod uses no more of a node than the node has.
func (r *Room) mayAddPods(p *PodShape, perNode int64) *int64 {
	most, bounded := int64(math.MaxInt64), false
	lower := func(n int64) { most, bounded = min(most, n), true }
	if r.MayAddNodes != nil {
		switch {
		case *r.MayAddNodes == 0:
			lower(0)
		case perNode > 0 && !r.Mixed:
			lower(cappedProduct(*r.MayAddNodes, perNode))
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
