package nodepool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// NodeKind is equal for nodes that almost every pod takes for the same: they differ in name, in labels that each node has of its own, and a little in
// memory and storage. A fleet of thousands of nodes has some dozens of kinds.
type NodeKind struct{ text unique.Handle[string] }

// KindOf returns the kind of a node.
func KindOf(node *Node) NodeKind {
	var text strings.Builder
	fmt.Fprintln(&text, node.Pool, node.Unschedulable, node.Ready, node.Declared, node.Taints)
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		value := node.Labels[key]
		if own(node, key) {
			value = ""
		}
		fmt.Fprintf(&text, "%q %q\n", key, value)
	}
	for _, name := range slices.Sorted(maps.Keys(node.Allocatable)) {
		amount := node.Allocatable[name]
		if measured(name) {
			amount = 0
		}
		fmt.Fprintf(&text, "%q %d\n", name, amount)
	}
	if node.GPUs != nil {
		gpus := *node.GPUs
		gpus.Name, gpus.PerCard = "", slices.Clone(gpus.PerCard)
		for i := range gpus.PerCard {
			gpus.PerCard[i].UUID = nil
		}
		if err := json.NewEncoder(&text).Encode(gpus); err != nil {
			text.WriteString(node.Name) // a kind of its own
		}
	}
	return NodeKind{unique.Make(text.String())}
}

// own reports whether a label has another value on every node. Where a label is taken for one that is none, or the other way round, answers are the
// same and take longer.
func own(node *Node, key string) bool {
	for _, suffix := range []string{"/hostname", "instance-id", "timestamp"} {
		if strings.HasSuffix(key, suffix) {
			return true
		}
	}
	return node.Name != "" && strings.Contains(node.Labels[key], node.Name)
}

// measured are resources of which machines of one type have some KiB more or less.
func measured(name string) bool { return name == "memory" || name == "ephemeral-storage" }

// Lots are nodes sorted into lots of one kind, so that a pod need not be held against each of thousands of nodes. They are never changed.
type Lots struct {
	nodes []Node
	lots  []lot
	// rest are places that are no nodes.
	rest []Node
}

// lot is nodes of one kind, in the order of all nodes.
type lot struct {
	members []int
	// apart are the labels in which they differ, least and most bound what they have of measured resources.
	apart       map[string]bool
	least, most Quantities
}

// LotsOf sorts nodes into lots; kind tells the kind of the i-th. The declared shapes stay by themselves.
func LotsOf(nodes []Node, kind func(i int) NodeKind, declared []Node) *Lots {
	l := &Lots{nodes: nodes, rest: declared}
	byKind := map[NodeKind]int{}
	for i := range nodes {
		k := kind(i)
		at, known := byKind[k]
		if !known {
			at = len(l.lots)
			byKind[k] = at
			l.lots = append(l.lots, lot{apart: map[string]bool{}, least: Quantities{}, most: Quantities{}})
		}
		l.lots[at].add(nodes, i)
	}
	return l
}

func (l *lot) add(nodes []Node, i int) {
	node := &nodes[i]
	for name, amount := range node.Allocatable {
		if !measured(name) {
			continue
		}
		if least, known := l.least[name]; !known || amount < least {
			l.least[name] = amount
		}
		l.most[name] = max(l.most[name], amount)
	}
	if len(l.members) > 0 {
		for key, value := range nodes[l.members[0]].Labels {
			if !l.apart[key] && node.Labels[key] != value {
				l.apart[key] = true
			}
		}
	}
	l.members = append(l.members, i)
}

// For returns the places that a pod of this shape is to be held against: of each lot whose nodes are all the same to it the first, with the number of
// the others in Alike, and every node of the other lots, in the order of all nodes. What is found out by them is what is found out by all nodes.
func (l *Lots) For(shape *PodShape) []Node {
	named := shape.NodeName != "" || slices.ContainsFunc(shape.Affinity, func(t NodeTerm) bool { return len(t.Fields) > 0 })
	if named {
		return slices.Concat(l.nodes, l.rest)
	}
	alike := map[int]int{} // by the number of the node that stands for the others
	for i := range l.lots {
		lot := &l.lots[i]
		if !lot.differs(shape) {
			alike[lot.members[0]] = len(lot.members) - 1
			continue
		}
		for _, member := range lot.members {
			alike[member] = 0
		}
	}
	places := make([]Node, 0, len(alike)+len(l.rest))
	for _, i := range slices.Sorted(maps.Keys(alike)) {
		place := l.nodes[i]
		place.Alike = alike[i]
		places = append(places, place)
	}
	return append(places, l.rest...)
}

// differs reports whether the nodes of the lot may not all be the same to the shape.
func (l *lot) differs(shape *PodShape) bool {
	for key := range shape.Selector {
		if l.apart[key] {
			return true
		}
	}
	for _, term := range shape.Affinity {
		if slices.ContainsFunc(term.Labels, func(r Requirement) bool { return l.apart[r.Key] }) {
			return true
		}
	}
	for name, want := range shape.Requests {
		if measured(name) && want > 0 && times(l.least[name], want) != times(l.most[name], want) {
			return true
		}
	}
	return false
}

func times(have, want raydemand.Amount) int64 { return int64(have / want) }
