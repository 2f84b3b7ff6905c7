package landing

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"
)

// poolView is what the nodes and the declared shape of one pool show about a shape of pods.
type poolView struct {
	room *Room
	// nodes counts existing nodes, but those that others stand for. best and shape are the best outlooks of the nodes
	// and of the declared shape.
	nodes       int
	best, shape outlook
	declared    bool
	// notReady is the first node that could hold a pod if it were ready; empty if there is none.
	notReady string
	// oldest is when the first node registered that can never hold a pod, settles when the newest node is complete.
	oldest, settles time.Time
	// holds is how many pods the nodes hold if they are empty.
	holds int64
	// fresh is what a new node has.
	fresh newNode
	// shown are the resources that a pod requests and that a node or the declared shape announces.
	shown map[string]bool
	// byType is the node of each instance type that holds the fewest pods, but one at least. coming are nodes that have
	// not come up.
	byType map[string]leastOfType
	coming []*Node
}

// leastOfType is the node of an instance type that holds the fewest pods.
type leastOfType struct {
	node *Node
	pods int64
}

// add adds a node, and reports whether pods may be scheduled there now if there is room, or soon, if it comes up like
// other nodes of its type.
func (v *poolView) add(p *PodShape, place *Node, misses []mismatch) (now, soon bool) {
	outlook := p.outlookOn(place, misses)
	if place.Declared {
		v.declared, v.shape = true, outlook
		if outlook != unsaid && !v.fresh.declared {
			v.fresh = newNode{declared: true} // it describes new nodes, whatever other nodes are like
		}
	} else {
		v.exists(p, place, misses, outlook)
	}
	v.note(p, place)
	switch {
	case onlyOf(misses, notReady, cordoned, unhealthy):
		// An added node has healthy cards.
		n := p.podsOnNew(place)
		v.fresh.show(place, n)
		if v.byType == nil {
			v.byType = map[string]leastOfType{}
		}
		kind := instanceType(place)
		if least, known := v.byType[kind]; n > 0 && (!known || n < least.pods) {
			v.byType[kind] = leastOfType{place, n}
		}
		if !place.Unschedulable && !place.Declared {
			v.holds += cappedProduct(p.podsOn(place), 1+int64(place.Alike))
			return true, false
		}
	case onlyOf(misses, notReady, notAnnounced, tainted) &&
		!onlyOf(misses, tainted):
		v.coming = append(v.coming, place)
		return false, true
	}
	return false, false
}

func (v *poolView) exists(p *PodShape, place *Node, misses []mismatch, outlook outlook) {
	if v.nodes == 0 || outlook < v.best {
		v.best = outlook
	}
	v.nodes++
	if outlook == holdsLater && onlyOf(misses, notReady) {
		v.notReady = cmp.Or(v.notReady, place.Name)
	}
	v.settles = later(v.settles, place)
	if outlook == never && (v.oldest.IsZero() || place.CreatedAt.Before(v.oldest)) {
		v.oldest = place.CreatedAt
	}
}

// allHold counts nodes that have not come up as if they had. It takes minutes until a new node is ready, its device
// plugin announces devices, and its startup taints are gone; meanwhile its autoscaler already counts it. Such a node
// counts if a node of the same instance type could hold a pod.
func (v *poolView) allHold() int64 {
	holds := v.holds
	for _, node := range v.coming {
		if kind := instanceType(node); kind != "" {
			holds += cappedProduct(v.byType[kind].pods, 1+int64(node.Alike))
		}
	}
	return holds
}

// proven reports whether something shows that nodes which Karpenter adds to the pool can hold a pod: a node, a declared
// shape, or a NodePool that describes its nodes.
func (v *poolView) proven(p *PodShape) bool {
	return v.fresh.pods > 0 ||
		v.room.Template != nil && !asksForeign(p, v.shows)
}

func instanceType(node *Node) string { return node.Labels["node.kubernetes.io/instance-type"] }

// note notes which of the pod's requests a node announces.
func (v *poolView) note(p *PodShape, place *Node) {
	for name := range p.Requests {
		if p.counts(name) && place.Allocatable[name] > 0 {
			if v.shown == nil {
				v.shown = map[string]bool{}
			}
			v.shown[name] = true
		}
	}
}

func (v *poolView) shows(name string) bool { return v.shown[name] }

// answer returns what the pool says about the pod.
func (v *poolView) answer(p *PodShape) Answer {
	say := func(state State) Answer { return Answer{State: state} }
	more := v.room.mayAddPods(p, 0)
	full := more != nil && *more == 0 // the pool may add no node for the pod
	ifRoom := func(state State) Answer {
		switch {
		case !full:
			return say(state)
		case v.nodes > 0 && v.best < never:
			return say(Trying) // its nodes are coming up
		}
		return Answer{State: Limited, Why: v.room.noRoom(), Settles: v.settles}
	}
	switch {
	case v.nodes > 0 && v.best == holdsNow:
		return say(Fits)
	case v.declared && v.shape == holdsNow:
		return ifRoom(Fits)
	case v.nodes > 0 && v.best == holdsLater && v.room.Pool != "":
		switch {
		case !full:
			return say(Fits)
		case v.notReady != "":
			return Answer{State: Waiting, Why: "node " + v.notReady + " is NotReady, and pool " + v.room.Pool +
				" may add no other"}
		}
		return say(Trying) // its nodes are cordoned or have unhealthy cards
	case v.room.Template != nil:
		return v.ofTemplate(p, ifRoom)
	case (v.room.Mixed || v.nodes == 0 && !v.declared) && v.room.elsewhere(p):
		return v.nowhere()
	case v.room.Mixed || v.nodes == 0 && !v.declared:
		return ifRoom(Trying)
	case v.nodes > 0 && v.best < never:
		return say(Trying)
	case v.declared && v.shape < never:
		return ifRoom(Trying)
	}
	return v.nowhere()
}

func (v *poolView) nowhere() Answer {
	nowhere := Answer{State: Nowhere}
	if !v.oldest.IsZero() {
		nowhere.Settles = v.oldest.Add(deviceTime)
	}
	return nowhere
}

// ofTemplate judges by what a NodePool says about its nodes.
func (v *poolView) ofTemplate(p *PodShape, ifRoom func(State) Answer) Answer {
	if why := v.room.Refusal(p); why != "" {
		return Answer{State: Nowhere, Why: why}
	}
	if !asksForeign(p, v.shows) {
		return ifRoom(Fits)
	}
	return ifRoom(Trying)
}

// unknown reports whether nothing shows what the pool's nodes are, or that it can have none at all: only its name and
// its size are known.
func (v *poolView) unknown(p *PodShape) bool {
	return v.nodes == 0 && !v.declared && v.room.Template == nil && !v.room.Mixed && !v.room.elsewhere(p) &&
		(v.room.MaxNodes == nil || *v.room.MaxNodes > 0)
}

// pods returns how many pods the pool holds and could hold; false if it cannot accept a pod and never will. A pool
// without nodes and without a declared shape may accept any pod, unless its template or its name shows otherwise.
func (v *poolView) pods(p *PodShape) (PoolPods, bool) {
	room := v.room
	pods := PoolPods{Pool: room.Pool, PerNode: v.fresh.pods, Holds: v.allHold(), MayAddNodes: room.MayAddNodes}
	refuses := room.elsewhere(p) || room.Template != nil && room.Template.refusal(p) != nil
	switch {
	case v.fresh.pods > 0:
		pods.MayAddPods = room.mayAddPods(p, v.fresh.pods)
	case v.fresh.declared && pods.Holds > 0 && !room.Mixed:
		pods.MayAddPods = new(int64) // its new nodes are not like those that hold pods
	case (v.nodes > 0 || v.declared) && !room.Mixed || refuses:
		return pods, false
	default:
		// A full NodePool that fits the pod bounds the group. If nothing shows that the pool fits, it is left out.
		if pods.MayAddPods = room.mayAddPods(p, 0); pods.MayAddPods != nil && *pods.MayAddPods == 0 &&
			room.Template == nil {
			return pods, false
		}
	}
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

// newNode is what a node that a pool adds has for one kind of pods: its declared shape or, of each resource, the least
// that a node has on which a pod fits. Nodes of a pool may differ, and nothing shows which of them a new one is like.
// Each of these nodes holds a pod, so a node with the least of each resource holds one too.
type newNode struct {
	// has is empty if no pod fits on a node like those that are known.
	has Quantities
	// pods is how many of the kind fit on the node on which the fewest fit.
	pods int64
	// nodes are those that show what a new one has.
	nodes    []*Node
	declared bool
}

// show adds a node on which so many pods fit, if it were empty.
func (n *newNode) show(node *Node, pods int64) {
	if pods == 0 || n.declared && !node.Declared {
		return
	}
	if n.pods == 0 || pods < n.pods {
		n.pods = pods
	}
	n.add(node)
}

func (n *newNode) add(node *Node) {
	if n.nodes = append(n.nodes, node); len(n.nodes) == 1 {
		n.has = maps.Clone(node.Allocatable)
	}
	for name, have := range n.has {
		if n.has[name] = min(have, node.Allocatable[name]); n.has[name] <= 0 {
			delete(n.has, name)
		}
	}
}

// without leaves out nodes that have not announced all that they have, unless there are no others.
func (n *newNode) without(coming map[*Node]bool) *newNode {
	rest := *n
	rest.nodes, rest.has = nil, nil
	for _, node := range n.nodes {
		if !coming[node] {
			rest.add(node)
		}
	}
	if len(rest.nodes) == 0 || len(rest.nodes) == len(n.nodes) {
		return n
	}
	return &rest
}

func (n *newNode) equalCards(other *newNode) bool {
	cards, order := n.cards()
	others, otherOrder := other.cards()
	return order == otherOrder && reflect.DeepEqual(cards, others)
}

// equal reports whether a new node is the same for two kinds of pods.
func (n *newNode) equal(other *newNode) bool {
	return maps.Equal(n.has, other.has) &&
		(slices.Equal(n.nodes, other.nodes) || n.equalCards(other) &&
			reflect.DeepEqual(leastDevices(n.nodes), leastDevices(other.nodes)))
}

func (n *newNode) cards() (all []Card, order string) {
	for _, node := range n.nodes {
		each, own := newCards(node)
		all, order = leastCards(all, each), cmp.Or(order, own)
	}
	return all, order
}

// leastCards returns as many cards as the node with fewer has, of which each has as much as the smaller one.
func leastCards(a, b []Card) []Card {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	least, other := a[0], b[0]
	least.Count = min(least.Count, other.Count)
	if least.Total == 0 || other.Total > 0 && other.Total < least.Total {
		least.Total, least.Memory = other.Total, other.Memory
	}
	if least.Slots == nil || other.Slots != nil && *other.Slots < *least.Slots {
		least.Slots = other.Slots
	}
	return []Card{least}
}
