package nodepool

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// PoolPods says of each pool that could take a pod of this shape how many it holds and could hold, in the order of rooms; Bound and FreeNow are left
// open. A pool without nodes and without a declared shape may take any pod, unless its template or its name tells otherwise.
func (p *PodShape) PoolPods(rooms []PoolRoom, places []Node) []PoolPods {
	byName := make(map[string]*poolCount, len(rooms))
	for i := range rooms {
		byName[rooms[i].Pool] = &poolCount{}
	}
	var misses []miss
	for i := range places {
		place := &places[i]
		count := byName[place.pool()]
		if count == nil {
			continue
		}
		misses = p.misses(place, misses[:0])
		count.known = count.known || !place.Declared
		if slices.ContainsFunc(misses, func(m miss) bool { return m.kind != notReady && m.kind != cordoned }) {
			count.known = true
			continue
		}
		n := p.PodsOn(place)
		count.known, count.perNode = true, max(count.perNode, n)
		if len(misses) == 0 && !place.Declared {
			count.holds += product(n, 1+int64(place.Alike))
		}
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
	// known: there is a node or a shape.
	known          bool
	perNode, holds int64
}

// of is false where the pool can take no pod and never will.
func (c *poolCount) of(room *PoolRoom, p *PodShape) (PoolPods, bool) {
	pods := PoolPods{Pool: room.Pool, PerNode: c.perNode, Holds: c.holds, MayAddNodes: room.MayAddNodes}
	refuses := room.elsewhere(p) || room.Template != nil && room.Template.refuses(p)
	switch {
	case c.perNode > 0:
		pods.MayAddPods = room.mayAddPods(p, c.perNode)
	case c.known && !room.Mixed || refuses:
		return pods, false
	default:
		if pods.MayAddPods = room.mayAddPods(p, 0); pods.MayAddPods != nil && *pods.MayAddPods == 0 {
			return pods, false
		}
	}
	return pods, true
}

// mayAddPods is how many pods the nodes hold that may still be added; nil where nothing bounds them. Where nodes may be of any size only the limits
// on resources tell: no node is added once they would be passed, and a pod takes no more of a node than the node has.
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

// PodsOn is how many pods of this shape the node would hold, were it empty: by what it announces for pods, and of parts of cards card by card. It
// does not look at whether they may land there.
func (p *PodShape) PodsOn(node *Node) int64 {
	n := int64(boundless)
	if pods := node.Allocatable["pods"]; pods > 0 {
		n = whole(pods)
	}
	for name, want := range p.Requests {
		if want > 0 && !checkedElsewhere[name] {
			n = min(n, int64(node.Allocatable[name]/want))
		}
	}
	ask, asks := p.cardAsk()
	if !asks || n == 0 {
		return n
	}
	gpus := GPUReader{}.of(node)
	if gpus.Kind != ask.kind || gpus.Cards == nil {
		return n
	}
	if ask.memory == 0 && p.Requests[gpuinfo.HAMiMemoryPercentage] > 0 {
		return n
	}
	return min(n, podsOver(ask.emptyRooms(gpus), ask.cards))
}

// emptyRooms is how often the card's part of a pod fits on each card of a node, were all of them empty and well. What is not known of cards bounds
// nothing.
func (a cardAsk) emptyRooms(gpus NodeGPUs) []int64 {
	times := int64(boundless)
	switch largest, known := gpus.largestCard(a.resource); {
	case a.memory == 0:
		times = 1 // without an amount it is all of the card
	case known:
		times = largest / a.memory
	}
	if a.cores > 0 {
		times = min(times, 100/a.cores)
	}
	rooms := make([]int64, *gpus.Cards)
	for i := range rooms {
		rooms[i] = times
	}
	return rooms
}
