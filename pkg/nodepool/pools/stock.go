package pools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/binpack"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Stock is the nodes of a Kubernetes cluster as places for pods: nodes that are equal and have as much free are
// together. All RayClusters share one Stock. It is immutable.
type Stock struct {
	rooms []Room
	nodes *podfit.Classes
	// lots are the parts of each class, by the position of its first node.
	lots map[int][]lot
	// memories are the resources that count the memory of cards, by their names on the nodes.
	memories []string
	// pods are the pods on the nodes as terms of other pods see them, repelling those with anti-affinity of their own.
	// counted is false while they are unknown.
	pods, repelling []nodePod
	counted         bool
}

// lot is nodes of one class of which pods take equally much.
type lot struct {
	members []int
	free    podfit.Quantities
	cards   []binpack.Card
	// order is how the cards' scheduler chooses among them.
	order string
}

// StockOf sorts nodes by what is free on them. rooms are the pools of these nodes, and of the declared shapes.
func StockOf(nodes *podfit.Classes, rooms []Room) *Stock {
	s := &Stock{rooms: rooms, nodes: nodes, lots: map[int][]lot{}}
	all, memories := nodes.Nodes(), map[string]bool{}
	s.pods, s.repelling, s.counted = podsOn(all)
	for _, kind := range nodes.Kinds(nil, nil) {
		if kind.Node.GPUs != nil {
			for name := range kind.Node.GPUs.UnitsPerCard {
				memories[name] = true
			}
		}
		if len(kind.Members) > 0 {
			s.lots[kind.Members[0]] = lotsOf(all, kind.Members)
		}
	}
	s.memories = slices.Sorted(maps.Keys(memories))
	return s
}

// lotsOf returns the parts of a kind of nodes.
func (s *Stock) lotsOf(kind podfit.Kind) []lot {
	if len(kind.Members) == 1 {
		return lotsOf(s.nodes.Nodes(), kind.Members)
	}
	return s.lots[kind.Members[0]]
}

func lotsOf(nodes []podfit.Node, members []int) []lot {
	var lots []lot
	byUse := map[string]int{}
	for _, member := range members {
		key := useText(nodes[member].Use)
		at, known := byUse[key]
		if !known {
			at = len(lots)
			byUse[key] = at
			cards, order := freeCards(&nodes[member])
			lots = append(lots, lot{free: freeOn(&nodes[member]), cards: cards, order: order})
		}
		lots[at].add(&nodes[member], member)
	}
	return lots
}

// add joins an equal node. Nodes of a class may differ by some KiB of memory; what all of them have counts.
func (l *lot) add(node *podfit.Node, member int) {
	l.members = append(l.members, member)
	for _, name := range []string{"memory", "ephemeral-storage"} {
		if have, known := l.free[name]; known {
			l.free[name] = min(have, leftOf(node, name))
		}
	}
}

// useText is equal for nodes of one class of which pods take equally much.
func useText(use *podfit.Use) string {
	if use == nil {
		return ""
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(use.Requests)) {
		fmt.Fprintf(&text, "%s %d\n", name, use.Requests[name])
	}
	for _, card := range use.Cards {
		fmt.Fprintln(&text, numberText(card.FreeMiB), numberText(card.FreeUnits), numberText(card.FreeCores),
			card.Healthy == nil || *card.Healthy)
	}
	return text.String()
}

func numberText(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// freeOn returns what pods may still take of a node.
func freeOn(node *podfit.Node) podfit.Quantities {
	free := make(podfit.Quantities, len(node.Allocatable))
	for name, have := range node.Allocatable {
		if have > 0 {
			free[name] = leftOf(node, name)
		}
	}
	return free
}

func leftOf(node *podfit.Node, name string) raydemand.Amount {
	have := node.Usable(name)
	if node.Use != nil {
		have -= node.Use.Requests[name]
	}
	return max(have, 0)
}
