package nodepool

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// PodsOf says of each pool that could take a pod of this shape how many it holds and could hold, in the order of rooms; Bound is left open. A pool without nodes and without a declared shape may take any pod, unless its template or its name tells otherwise.
func PodsOf(p *podfit.PodShape, rooms []PoolRoom, places []podfit.Node) []PoolPods {
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
	var list []PoolPods
	for i := range rooms {
		if pods, could := byName[rooms[i].Pool].of(&rooms[i], p); could {
			list = append(list, pods)
		}
	}
	return list
}

// poolCount is what the nodes and the declared shape of one pool tell about a shape of pods.
type poolCount struct {
	room *PoolRoom
	// unlike: a node of Karpenter's shows that none which is added takes the pods; like: one does not.
	unlike, like bool
	// known: there is a node or a shape. fixed: it is of a cloud that fixes the MIG profile of a pool.
	known, fixed   bool
	perNode, holds int64
	// has adds up what the nodes have of what a pod takes, and perHas is the most that one has.
	has, perHas podfit.Quantities
	cards       []nodegpu.CutCards
	// byType is what a node of an instance type holds. coming are nodes that have not come up.
	byType map[string]int64
	coming []*podfit.Node
}

func (c *poolCount) add(p *podfit.PodShape, place *podfit.Node, misses []podfit.Mismatch) {
	c.known = true
	c.fixed = c.fixed || place.MIGProfileFixed()
	c.count(p, place)
	if c.room.Mixed && !place.Declared {
		unlike := unlike(p, place, c.room.Template)
		c.unlike, c.like = c.unlike || unlike, c.like || !unlike
	}
	switch {
	case podfit.OnlyOf(misses, podfit.NotReady, podfit.Cordoned, podfit.Unhealthy):
		// A node that is added has cards that are well.
		n := p.PodsOnNew(place)
		if !place.Declared && n > 0 {
			c.addCards(place)
		}
		c.perNode = max(c.perNode, n)
		if c.byType == nil {
			c.byType = map[string]int64{}
		}
		kind := instanceType(place)
		c.byType[kind] = max(c.byType[kind], n)
		if !place.Unschedulable && !place.Declared {
			c.holds += podfit.CappedProduct(p.PodsOn(place), 1+int64(place.Alike))
		}
	case podfit.OnlyOf(misses, podfit.NotReady, podfit.NotAnnounced, podfit.Tainted) && !podfit.OnlyOf(misses, podfit.Tainted):
		c.coming = append(c.coming, place)
	}
}

// allHold counts nodes that have not come up as if they had: it takes minutes until a new one is ready, its device plugin announces devices, and
// the taints of its start are gone, and meanwhile it is one of those that its autoscaler counts. Such a one is of the same instance type as
// one that could hold a pod.
func (c *poolCount) allHold() int64 {
	holds := c.holds
	for _, node := range c.coming {
		if kind := instanceType(node); kind != "" {
			holds += podfit.CappedProduct(c.byType[kind], 1+int64(node.Alike))
		}
	}
	return holds
}

func instanceType(node *podfit.Node) string { return node.Labels["node.kubernetes.io/instance-type"] }

// of is false where the pool can take no pod and never will.
func (c *poolCount) of(room *PoolRoom, p *podfit.PodShape) (PoolPods, bool) {
	pods := PoolPods{Pool: room.Pool, ProfileFixed: c.fixed, PerNode: c.perNode, Holds: c.allHold(), MayAddNodes: room.MayAddNodes,
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
		if pods.MayAddPods = room.mayAddPods(p, 0); pods.MayAddPods != nil && *pods.MayAddPods == 0 && room.Template == nil {
			return pods, false
		}
	}
	pods.Has, pods.Cards = c.allHave(room), c.cards
	return pods, true
}

// mayAddPods is how many pods the nodes hold that may still be added; nil where nothing bounds them. Where nodes may be of any size only the limits
// on resources tell: no node is added once they would be passed (docs/reference/facts.md#limits-of-a-nodepool), and a pod takes no more of a node than
// the node has.
func (r *PoolRoom) mayAddPods(p *podfit.PodShape, perNode int64) *int64 {
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

// addCards counts the cards of a node, and of those that it stands for, with others that are cut alike.
func (c *poolCount) addCards(place *podfit.Node) {
	gpus := podfit.ReadNode(nodegpu.Reader{}, place)
	more, known := gpus.CutCards()
	if !known {
		return
	}
	times := 1 + int64(place.Alike)
	more.Count = podfit.CappedProduct(more.Count, times)
	if more.Busy != nil {
		busy := podfit.CappedProduct(*more.Busy, times)
		more.Busy = &busy
	}
	more.Cut = slices.Clone(more.Cut)
	for i := range more.Cut {
		more.Cut[i].Count = podfit.CappedProduct(more.Cut[i].Count, times)
	}
	for i := range c.cards {
		if c.cards[i].Alike(more) {
			c.cards[i].Add(more)
			return
		}
	}
	c.cards = append(c.cards, more)
}
