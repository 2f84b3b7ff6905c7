package landing

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Place is a number of Kubernetes nodes that are equal for the pods in question: the same pods may be scheduled there,
// and the same is free on each.
type Place struct {
	Pool string `json:"pool,omitempty"`
	// Node is the name of the node, or of the first of them, if they exist.
	Node string `json:"node,omitempty"`
	// Nodes is how many there are; nil means that the pool may add them without a known bound.
	Nodes *int64 `json:"nodes"`
	// New says that the nodes do not exist yet.
	New bool `json:"new,omitempty"`
	// SameNodes says that new nodes of the pool are in several places, one for each assumption about what they
	// have: a node that is added in one of these places is one fewer in the others. No pod is accepted by two of them.
	SameNodes bool `json:"sameNodes,omitempty"`
	// AnySize says that the pool adds nodes of any size, as Karpenter does, or of an unknown shape. Then Free is the
	// total over all of them, a resource that is not in Free bounds nothing, and Cards do not apply.
	AnySize bool `json:"anySize,omitempty"`
	// Unproven says that nothing shows that nodes which the pool adds can hold the pods that they accept: no node, no
	// declared shape, and no NodePool.
	Unproven bool `json:"unproven,omitempty"`
	// Free is what pods may still take of each node, with the number of pods under "pods". A resource that is not in
	// Free is not there; only the number of pods is then unbounded.
	Free Quantities `json:"free"`
	// Cards are set where a scheduler hands out parts of cards. nil: single cards are unknown, and Free alone bounds.
	Cards []Card `json:"cards,omitempty"`
	// Devices are those of which several resources in Free are made.
	Devices []Devices `json:"devices,omitempty"`
	// CardOrder is how that scheduler chooses among cards: sharing.FullestCard, EmptiestCard or LastCard; empty if it
	// is unknown.
	CardOrder string `json:"cardOrder,omitempty"`
	// Accepts are the names of the pods that may be scheduled here: by node name, labels, taints, affinity and the kind
	// of sharing.
	Accepts []string `json:"accepts"`
	// Holds counts by name the pods that are on each node already. Free is without them.
	Holds map[string]int64 `json:"holds,omitempty"`
}

// Card is what pods may still take of one card of a node, or of each of several equal cards. A nil amount is unknown
// and bounds nothing.
type Card struct {
	// Count is how many cards of the node are equal; 0 means one.
	Count int64 `json:"count,omitempty"`
	// Total is the card's memory in units of the resource, of which pods may request a percentage. 0: unknown.
	Total int64 `json:"total,omitempty"`
	// Memory is what is left of it in units of the resource, Cores what is left of the card's cores in percent, and
	// Slots how many more pods may share the card.
	Memory *int64 `json:"memory,omitempty"`
	Cores  *int64 `json:"cores,omitempty"`
	Slots  *int64 `json:"slots,omitempty"`
	// Used says that a pod uses a part of the card, so that it is no whole card.
	Used bool `json:"used,omitempty"`
	// Parts are what requests take of the card, the smallest first, if it is cut into parts of fixed sizes, as MIG
	// instances: the first that holds the memory.
	Parts []Part `json:"parts,omitempty"`
	// Refuses are the names of the pods that Accepts of the place has and that do not want this card.
	Refuses []string `json:"refuses,omitempty"`
}

// sameRules reports whether requests take the same of both cards, if there is as much left.
func (c Card) sameRules(other Card) bool {
	return slices.Equal(c.Parts, other.Parts) && slices.Equal(c.Refuses, other.Refuses)
}

// Part is the memory and the cores of a part of a card, in the units of Card.
type Part struct {
	Memory int64 `json:"memory"`
	Cores  int64 `json:"cores"`
}

// Pod is a kind of pods that are equal for a scheduler: those of one worker group, or pods that are on nodes and that a
// constraint of another kind selects.
type Pod struct {
	Name string `json:"name"`
	// Requests is what one pod takes of a node. It takes one of the node's "pods" in any case.
	Requests Quantities `json:"requests"`
	// Node is the only node where it may be: the template's spec.nodeName.
	Node string `json:"node,omitempty"`
	// Cards is what it takes of single cards beside that, on nodes that list them.
	Cards *CardRequest `json:"cards,omitempty"`
	// Apart names the pods that must not be on the same node, by required anti-affinity or a port of the node. It holds
	// in both directions.
	Apart []string `json:"apart,omitempty"`
	// Domain is the node label of which all hosts of a replica share a value (ReplicaDomain); empty if there is none.
	Domain string `json:"domain,omitempty"`
}

// CardRequest is what a pod takes of single cards: the same of each of several different cards, or of
// as many parts of cards if they are stacked.
type CardRequest struct {
	// Cards is the number of cards; 0 means one.
	Cards int64 `json:"cards,omitempty"`
	// Memory is in units of the resource, MemoryPercent in percent of the card's memory if Memory is 0.
	Memory        int64 `json:"memory,omitempty"`
	MemoryPercent int64 `json:"memoryPercent,omitempty"`
	// Cores is in percent of one card.
	Cores int64 `json:"cores,omitempty"`
	// Stacked: a card may have several of the pod's parts.
	Stacked bool `json:"stacked,omitempty"`
	// pod is the name of the pod, which New sets.
	pod string
}

// Add adds in place, and creates the sums if there are none yet.
func (q Quantities) Add(more Quantities) Quantities {
	if q == nil && len(more) > 0 {
		q = make(Quantities, len(more))
	}
	for name, amount := range more {
		q[name] = q[name].Plus(amount)
	}
	return q
}

// Plus returns the sum of both.
func (q Quantities) Plus(more Quantities) Quantities { return maps.Clone(q).Add(more) }

// Quantities are amounts of Kubernetes resources by their exact names: cpu, memory in bytes, nvidia.com/mig-1g.10gb.
type Quantities map[string]raydemand.Amount

// WholeUnits returns the whole units in an amount.
func WholeUnits(amount raydemand.Amount) int64 { return int64(amount / raydemand.One) }

// take subtracts n pods with these requests from what a node has left, in place.
func (q Quantities) take(requests Quantities, n int64) {
	for name, want := range requests {
		if have, known := q[name]; known {
			q[name] = max(have-want.Times(n), 0)
		}
	}
	if have, known := q["pods"]; known {
		q["pods"] = max(have-raydemand.Whole(n), 0)
	}
}
