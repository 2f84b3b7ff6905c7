package pools

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// poolCount is what the nodes and the declared shape of one pool tell about a shape of pods.
type poolCount struct {
	room *Room
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
	case podfit.OnlyOf(misses, podfit.NotReady, podfit.NotAnnounced, podfit.Tainted) &&
		!podfit.OnlyOf(misses, podfit.Tainted):
		c.coming = append(c.coming, place)
	}
}

// allHold counts nodes that have not come up as if they had: it takes minutes until a new one is ready, its device
// plugin announces devices, and the taints of its start are gone, and meanwhile it is one of those that its autoscaler
// counts. Such a one is of the same instance type as one that could hold a pod.
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

// count adds what a node has of what a pod takes.
func (c *poolCount) count(p *podfit.PodShape, place *podfit.Node) {
	if c.perHas == nil {
		c.has, c.perHas = podfit.Quantities{}, podfit.Quantities{}
	}
	each := func(name string) {
		have := place.Allocatable[name]
		c.perHas[name] = max(c.perHas[name], have)
		if !place.Declared {
			c.has[name] = c.has[name].Plus(place.Usable(name).Times(1 + int64(place.Alike)))
		}
	}
	for name, want := range p.Requests {
		if want > 0 && !podfit.CheckedElsewhere[name] {
			each(name)
		}
	}
	each("pods")
}

// allHave is what the nodes that are there and those that may be added have together, of the resources that something
// bounds. A node that comes up has as much as any.
func (c *poolCount) allHave(room *Room) podfit.Quantities {
	var slow int64
	for _, node := range c.coming {
		if kind := instanceType(node); kind != "" && c.byType[kind] > 0 {
			slow += 1 + int64(node.Alike)
		}
	}
	var all podfit.Quantities
	for name, most := range c.perHas {
		sum := c.has[name].Plus(most.Times(slow))
		limit, limited := room.Limits[name]
		switch {
		case most <= 0: // no node tells
			continue
		case room.MayAddNodes != nil && (*room.MayAddNodes == 0 || !room.Mixed):
			sum = sum.Plus(most.Times(*room.MayAddNodes))
		case limited:
			sum = sum.Plus(max(limit-room.Used[name], 0))
		default:
			continue
		}
		if all == nil {
			all = podfit.Quantities{}
		}
		all[name] = sum
	}
	return all
}
