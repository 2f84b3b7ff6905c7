// Package landing says where pods can run, on nodes and in pools, and how many. Its words are:
//
//   - PodShape: what a pod requests, and what it demands of its node.
//   - Node: what a node has for pods, and what pods take of it (Use).
//   - Room: a pool, with what its autoscaler may still add (Ceiling, Config, NodeTemplate). Pools is all of them.
//   - Nodes: the model, all nodes and pools; equal nodes are one. It answers for a PodShape with an Answer, and for the
//     groups of a RayCluster with Places.
//   - Answer: on which nodes a shape fits, how many pods each pool holds (PoolPods), and what is proven (State). What
//     cannot be proven is Trying.
//   - Place: equal nodes with what is free on each, for kinds of pods (Kind, Pod) with a CardRequest and constraints.
//   - Packer: places, and the kinds of pods to place on them. Taken is what has been placed, with the Room left for
//     more and why there is no more (Shortage).
//   - Shared: how many pods groups (Tenants) may have together, because they share places and quotas, and places are
//     promised to pods of other RayClusters (Promise).
//   - Slice: what the GPUs of a pod are where it lands.
//   - NodeClaim: a node on its way. Incoming is the places that it offers to waiting pods.
//   - Announced: what Ray will know of a pod that does not exist yet, by the nodes where it can land.
//
// The rules are those of the scheduler's filters, and of the schedulers that hand out parts of cards. The package must
// not know clusters or worker groups, or decide which pods are worth placing, and it must not use the network, files or
// clocks.
package landing

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Nodes are the nodes of a Kubernetes cluster and what its pools may add, as places for pods: nodes that are equal and
// have as much free are together. All RayClusters share one. It is immutable.
type Nodes struct {
	Pools
	nodes   []Node
	classes []class
	// lots are the parts of each class, by the position of its first node.
	lots map[int][]lot
	// memories are the resources that count the memory of cards, by their names on the nodes.
	memories []string
	// pods are the pods on the nodes as terms of other pods see them, once they are needed; repelling are those with
	// anti-affinity of their own. counted is false while they are unknown.
	pods      func() []nodePod
	repelling []nodePod
	counted   bool
	// byName are the positions of the nodes, once they are needed.
	byName func() map[string]int
}

// Pools are what is known of nodes that do not exist yet.
type Pools struct {
	// Rooms are the pools of the nodes and those that may get a node. Shapes are the declared shapes of new nodes.
	Rooms  []Room
	Shapes []Node
	// Complete: no other pool can get a node (Config.Complete). NodePools: all of Karpenter's NodePools are among the
	// rooms.
	Complete, NodePools bool
	// PoolLabel is a node label that names pools, in addition to sharing.PoolLabels.
	PoolLabel string
}

// lot is nodes of one class of which pods take equally much.
type lot struct {
	members []int
	free    Quantities
	devices []Devices
	cardsOf
	// holds counts the given pods that each of them holds, as far as that makes a difference.
	holds map[string]int64
}

// NodesOf sorts nodes by their class and by what is free on them. If all NodePools are known, pools whose NodePool is
// deleted and whose nodes are left get no node.
func NodesOf(nodes []Node, pools Pools) *Nodes {
	if pools.NodePools {
		pools.Rooms = closeDeleted(pools.Rooms)
	}
	s := &Nodes{Pools: pools, classes: classesOf(nodes)}
	return s.With(nodes)
}

// With returns the same nodes, in the same order, with other use of them.
func (s *Nodes) With(nodes []Node) *Nodes {
	s, memories := &Nodes{Pools: s.Pools, nodes: nodes, classes: s.classes, lots: map[int][]lot{}}, map[string]bool{}
	s.counted = slices.ContainsFunc(nodes, func(n Node) bool { return n.Use != nil })
	s.repelling = podsOn(nodes, func(pod *Neighbors) bool { return len(pod.Apart) > 0 })
	s.pods = sync.OnceValue(func() []nodePod {
		return podsOn(nodes, func(*Neighbors) bool { return true })
	})
	for _, kind := range s.kindsFor(nil) {
		if kind.Node.GPUs != nil {
			for name := range kind.Node.GPUs.UnitsPerCard {
				memories[name] = true
			}
		}
		if len(kind.Members) > 0 {
			s.lots[kind.Members[0]] = lotsOf(nodes, kind.Members)
		}
	}
	s.memories = slices.Sorted(maps.Keys(memories))
	s.byName = sync.OnceValue(func() map[string]int {
		positions := make(map[string]int, len(nodes))
		for i := range nodes {
			positions[nodes[i].Name] = i
		}
		return positions
	})
	return s
}

// lotsOf returns the parts of a kind of nodes.
func (s *Nodes) lotsOf(kind equalNodes) []lot {
	if len(kind.Members) == 1 {
		return lotsOf(s.nodes, kind.Members)
	}
	return s.lots[kind.Members[0]]
}

func lotsOf(nodes []Node, members []int) []lot {
	var lots []lot
	byUse := map[string]int{}
	var key []byte
	for _, member := range members {
		key = appendUse(key[:0], nodes[member].Use)
		at, known := byUse[string(key)]
		if !known {
			at = len(lots)
			byUse[string(key)] = at
			lots = append(lots, lot{
				free: freeOn(&nodes[member]), devices: freeDevices(&nodes[member]), cardsOf: freeCards(&nodes[member]),
			})
		}
		lots[at].add(&nodes[member], member)
	}
	return lots
}

// add joins an equal node. Nodes of a class may differ by some KiB of memory; what all of them have counts.
func (l *lot) add(node *Node, member int) {
	l.members = append(l.members, member)
	for _, name := range []string{"memory", "ephemeral-storage"} {
		if have, known := l.free[name]; known {
			l.free[name] = min(have, leftOf(node, name))
		}
	}
}

// appendUse appends a text that is equal for nodes of one class of which pods take equally much. It does without fmt,
// because it runs for all nodes after each change of a pod.
func appendUse(text []byte, use *Use) []byte {
	if use == nil {
		return text
	}
	for _, name := range slices.Sorted(maps.Keys(use.Requests)) {
		text = append(append(text, name...), ' ')
		text = append(strconv.AppendInt(text, int64(use.Requests[name]), 10), '\n')
	}
	for _, n := range use.Devices {
		text = append(strconv.AppendInt(text, n, 10), ' ')
	}
	for _, card := range use.Cards {
		for _, free := range []*int64{card.FreeMiB, card.FreeUnits, card.FreeCores} {
			text = append(appendNumber(text, free), ' ')
		}
		text = append(strconv.AppendBool(text, card.Healthy == nil || *card.Healthy), '\n')
	}
	return text
}

func appendNumber(text []byte, n *int64) []byte {
	if n == nil {
		return append(text, '?')
	}
	return strconv.AppendInt(text, *n, 10)
}

// freeOn returns what pods may still take of a node.
func freeOn(node *Node) Quantities {
	free := make(Quantities, len(node.Allocatable))
	for name, have := range node.Allocatable {
		if have > 0 || name == "pods" {
			free[name] = leftOf(node, name)
		}
	}
	return free
}

func leftOf(node *Node, name string) raydemand.Amount {
	have := node.Usable(name)
	if node.Use != nil {
		have -= node.Use.Requests[name]
	}
	return max(have, 0)
}

// Node returns the node with this name; nil if there is none. It must not be changed.
func (s *Nodes) Node(name string) *Node {
	if at, known := s.byName()[name]; known {
		return &s.nodes[at]
	}
	return nil
}
