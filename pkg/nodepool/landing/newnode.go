package landing

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
)

// newNode is what a node that a pool adds has for one kind of pods: its declared shape or, of each resource, the least
// that a node has on which a pod fits. Nodes of a pool may differ, and nothing shows which of them a new one is like.
// Each of these nodes holds a pod, so a node with the least of each resource holds one too.
type newNode struct {
	// has is empty if no pod fits on a node like those that are known.
	has Quantities
	// pods is how many of the kind fit, and like is the node on which the fewest fit.
	pods int64
	like *Node
	// nodes are those that show what a new one has. unequal: more pods fit on one of them than on another.
	nodes             []*Node
	unequal, declared bool
}

// show adds a node on which so many pods fit, if it were empty.
func (n *newNode) show(node *Node, pods int64) {
	if pods == 0 || n.declared && !node.Declared {
		return
	}
	n.unequal = n.unequal || n.like != nil && n.pods != pods
	if n.like == nil || pods < n.pods {
		n.pods, n.like = pods, node
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

// likeName names the node whose shape counts; empty if all nodes hold as many pods.
func (n *newNode) likeName() string {
	if !n.unequal {
		return ""
	}
	return n.like.Name
}

// equal reports whether a new node is the same for two kinds of pods.
func (n *newNode) equal(other *newNode) bool {
	return maps.Equal(n.has, other.has) &&
		(slices.Equal(n.nodes, other.nodes) || reflect.DeepEqual(n.cards(), other.cards()) &&
			reflect.DeepEqual(leastDevices(n.nodes), leastDevices(other.nodes)))
}

// cards returns the cards of a new node.
func (n *newNode) cards() (all cardsOf) {
	for _, node := range n.nodes {
		each := newCards(node)
		all.cards, all.order = leastCards(all.cards, each.cards), cmp.Or(all.order, each.order)
	}
	return all
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
