package landing

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// poolCount is what the nodes and the declared shape of one pool show about a shape of pods.
type poolCount struct {
	room *Room
	// unlike: one of Karpenter's nodes shows that no added node accepts the pods. alike: one does not show that.
	unlike, alike bool
	// known: there is a node or a shape. fixed: the pool is on a cloud that fixes the MIG profile of a pool.
	known, fixed bool
	holds        int64
	// fresh is what a new node has.
	fresh newNode
	// has adds up what the nodes have of the resources that a pod requests.
	has   podfit.Quantities
	cards []sharing.CutCards
	// byType is the node of each instance type that holds the fewest pods, but one at least. coming are nodes that have
	// not come up.
	byType map[string]leastOfType
	coming []*podfit.Node
}

// leastOfType is the node of an instance type that holds the fewest pods.
type leastOfType struct {
	node *podfit.Node
	pods int64
}

// verdict is what a node is for pods.
type verdict int

// holdsPods: pods may be scheduled there if there is room. holdsPodsSoon: if it comes up like other nodes of its type.
const (
	holdsNothing verdict = iota
	holdsPods
	holdsPodsSoon
)

func (c *poolCount) add(p *podfit.PodShape, place *podfit.Node, misses []podfit.Mismatch) verdict {
	c.known = true
	if place.Declared {
		c.fresh.declare(place, p)
	}
	c.fixed = c.fixed || place.MIGProfileFixed()
	c.count(p, place)
	if c.room.Mixed && !place.Declared {
		unlike := unlike(p, place, c.room.Template)
		c.unlike, c.alike = c.unlike || unlike, c.alike || !unlike
	}
	switch {
	case podfit.OnlyOf(misses, podfit.NotReady, podfit.Cordoned, podfit.Unhealthy):
		// An added node has healthy cards.
		n := p.PodsOnNew(place)
		if !place.Declared && n > 0 {
			c.addCards(place)
		}
		c.fresh.show(place, n)
		if c.byType == nil {
			c.byType = map[string]leastOfType{}
		}
		kind := instanceType(place)
		if least, known := c.byType[kind]; n > 0 && (!known || n < least.pods) {
			c.byType[kind] = leastOfType{place, n}
		}
		if !place.Unschedulable && !place.Declared {
			c.holds += podfit.CappedProduct(p.PodsOn(place), 1+int64(place.Alike))
			return holdsPods
		}
		return holdsNothing
	case podfit.OnlyOf(misses, podfit.NotReady, podfit.NotAnnounced, podfit.Tainted) &&
		!podfit.OnlyOf(misses, podfit.Tainted):
		c.coming = append(c.coming, place)
		return holdsPodsSoon
	}
	return holdsNothing
}

// allHold counts nodes that have not come up as if they had. It takes minutes until a new node is ready, its device
// plugin announces devices, and its startup taints are gone; meanwhile its autoscaler already counts it. Such a node
// counts if a node of the same instance type could hold a pod.
func (c *poolCount) allHold() int64 {
	holds := c.holds
	for _, node := range c.coming {
		if kind := instanceType(node); kind != "" {
			holds += podfit.CappedProduct(c.byType[kind].pods, 1+int64(node.Alike))
		}
	}
	return holds
}

// proven reports whether something shows that nodes which Karpenter adds to the pool can hold a pod: a node, a declared
// shape, or a NodePool that describes its nodes.
func (c *poolCount) proven(p *podfit.PodShape) bool {
	return c.fresh.pods > 0 ||
		c.room.Template != nil && !asksForeign(p, func(name string) bool { return c.has[name] > 0 })
}

func instanceType(node *podfit.Node) string { return node.Labels["node.kubernetes.io/instance-type"] }

// addCards counts the cards of a node, and of the nodes that it stands for, together with others partitioned alike.
func (c *poolCount) addCards(place *podfit.Node) {
	gpus := podfit.ReadNode(sharing.Reader{}, place)
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

// count adds what a node has of the resources that a pod requests.
func (c *poolCount) count(p *podfit.PodShape, place *podfit.Node) {
	if c.has == nil {
		c.has = podfit.Quantities{}
	}
	each := func(name string) {
		if have := c.has[name]; place.Declared {
			c.has[name] = have
		} else {
			c.has[name] = have.Plus(place.Usable(name).Times(1 + int64(place.Alike)))
		}
	}
	for name := range p.Requests {
		if p.Counts(name) {
			each(name)
		}
	}
	each("pods")
}

// allHave returns what the existing nodes and those that may be added have together, for resources that have a bound.
func (c *poolCount) allHave(room *Room) podfit.Quantities {
	var all podfit.Quantities
	for name, there := range c.has {
		sum, each := there.Plus(c.comingHave(name)), c.fresh.has[name]
		limit, limited := room.Limits[name]
		switch {
		case sum <= 0 && each <= 0: // no node shows it
			continue
		case room.MayAddNodes != nil && (*room.MayAddNodes == 0 || !room.Mixed):
			sum = sum.Plus(each.Times(*room.MayAddNodes))
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

// comingHave returns how much of a resource nodes will have that have not come up. Such a node is like others of its
// instance type.
func (c *poolCount) comingHave(name string) (all raydemand.Amount) {
	for _, node := range c.coming {
		kind := instanceType(node)
		if like := c.byType[kind].node; kind != "" && like != nil {
			all = all.Plus(like.Allocatable[name].Times(1 + int64(node.Alike)))
		}
	}
	return all
}
