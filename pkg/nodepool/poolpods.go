package nodepool

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// PoolPods says of each pool that could take a pod of this shape how many it holds and could hold, in the order of rooms; Bound is left open. A pool without nodes and without a declared shape may take any pod, unless its template or its name tells otherwise.
func (p *PodShape) PoolPods(rooms []PoolRoom, places []Node) []PoolPods {
	byName := make(map[string]*poolCount, len(rooms))
	for i := range rooms {
		byName[rooms[i].Pool] = &poolCount{room: &rooms[i]}
	}
	var misses []miss
	for i := range places {
		place := &places[i]
		count := byName[place.pool()]
		if count == nil {
			continue
		}
		misses = p.misses(place, misses[:0])
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

func (n *Node) pool() string {
	if n.Declared {
		return n.Name
	}
	return n.Pool
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
	has, perHas Quantities
	cards       []nodegpu.CutCards
	// byType is what a node of an instance type holds. coming are nodes that have not come up.
	byType map[string]int64
	coming []*Node
}

func (c *poolCount) add(p *PodShape, place *Node, misses []miss) {
	c.known = true
	c.fixed = c.fixed || place.profileFixed()
	c.count(p, place)
	if c.room.Mixed && !place.Declared {
		unlike := p.unlike(place, c.room.Template)
		c.unlike, c.like = c.unlike || unlike, c.like || !unlike
	}
	switch {
	case allOf(misses, notReady, cordoned, unwell):
		// A node that is added has cards that are well.
		n := p.podsOnNew(place)
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
			c.holds += product(p.PodsOn(place), 1+int64(place.Alike))
		}
	case allOf(misses, notReady, absent, tainted) && !allOf(misses, tainted):
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
			holds += product(c.byType[kind], 1+int64(node.Alike))
		}
	}
	return holds
}

func allOf(misses []miss, kinds ...missKind) bool {
	return !slices.ContainsFunc(misses, func(m miss) bool { return !slices.Contains(kinds, m.kind) })
}

func instanceType(node *Node) string { return node.Labels["node.kubernetes.io/instance-type"] }

// of is false where the pool can take no pod and never will.
func (c *poolCount) of(room *PoolRoom, p *PodShape) (PoolPods, bool) {
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
func (r *PoolRoom) mayAddPods(p *PodShape, perNode int64) *int64 {
	most, bounded := int64(math.MaxInt64), false
	lower := func(n int64) { most, bounded = min(most, n), true }
	if r.MayAddNodes != nil {
		switch {
		case *r.MayAddNodes == 0:
			lower(0)
		case perNode > 0 && !r.Mixed:
			lower(product(*r.MayAddNodes, perNode))
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

// boundless stands for pods that no request bounds; their sum over all nodes there can be does not overflow.
const boundless = 1 << 40

func product(a, b int64) int64 {
	if a > boundless/max(b, 1) {
		return boundless
	}
	return a * b
}

// PodsOn is how many pods of this shape the node would hold, were it empty: by what it announces for pods and has on cards that are well, and of parts
// of cards card by card. It does not look at whether they may land there.
func (p *PodShape) PodsOn(node *Node) int64 {
	return p.podsOn(node, node.offers, (*nodegpu.GPUs).WellCards)
}

// podsOnNew is PodsOn for a node like this one that is added: its cards are well.
func (p *PodShape) podsOnNew(node *Node) int64 {
	announced := func(name string) raydemand.Amount { return node.Allocatable[name] }
	return p.podsOn(node, announced, func(gpus *nodegpu.GPUs) *int64 { return gpus.Cards })
}

func (p *PodShape) podsOn(node *Node, has func(resource string) raydemand.Amount, cardsOf func(*nodegpu.GPUs) *int64) int64 {
	n := int64(boundless)
	if pods := node.Allocatable["pods"]; pods > 0 {
		n = whole(pods)
	}
	for name, want := range p.Requests {
		if want > 0 && !checkedElsewhere[name] {
			n = min(n, int64(has(name)/want))
		}
	}
	_, asks := p.cardAsk()
	if n == 0 || !asks && node.GPUs == nil {
		return n
	}
	gpus := readNode(nodegpu.Reader{}, node)
	ask, asks := p.cardAskOn(&gpus)
	cards := cardsOf(&gpus)
	if !asks || gpus.Kind != ask.kind || cards == nil {
		return n
	}
	if ask.memory == 0 && p.Requests[gpuinfo.HAMiMemoryPercentage] > 0 {
		return n
	}
	return min(n, podsOverAlike(*cards, ask.emptyRoom(gpus), ask.cards))
}

// emptyRoom is how often the card's part of a pod fits on one card of a node, were it empty and well; cards of a node are alike. What is not known of
// cards bounds nothing.
func (a cardAsk) emptyRoom(gpus nodegpu.GPUs) int64 {
	times := int64(boundless)
	switch largest, known := gpus.LargestCard(a.resource); {
	case a.memory == 0:
		times = 1 // without an amount it is all of the card
	case known:
		times = largest / a.memory
	}
	if a.cores > 0 {
		times = min(times, 100/a.cores)
	}
	return times
}

// podsOverAlike is how many pods fit that take a place on so many cards each, of cards with the same room. It makes no list of them: a label that counts
// cards is no bound on memory.
func podsOverAlike(count, room, cards int64) int64 {
	switch {
	case count < cards:
		return 0
	case room >= boundless:
		return boundless
	}
	return product(count, room) / cards
}

// addCards counts the cards of a node, and of those that it stands for, with others that are cut alike.
func (c *poolCount) addCards(place *Node) {
	gpus := readNode(nodegpu.Reader{}, place)
	more, known := gpus.CutCards()
	if !known {
		return
	}
	times := 1 + int64(place.Alike)
	more.Count = product(more.Count, times)
	if more.Busy != nil {
		busy := product(*more.Busy, times)
		more.Busy = &busy
	}
	more.Cut = slices.Clone(more.Cut)
	for i := range more.Cut {
		more.Cut[i].Count = product(more.Cut[i].Count, times)
	}
	for i := range c.cards {
		if c.cards[i].Alike(more) {
			c.cards[i].Add(more)
			return
		}
	}
	c.cards = append(c.cards, more)
}
