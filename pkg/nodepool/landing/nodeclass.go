package landing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// NodeClass is equal for nodes that are the same for almost every pod: they differ in name, in labels that are unique
// to each node, and slightly in memory and storage. A fleet of thousands of nodes has some dozens of classes.
type NodeClass struct{ text unique.Handle[string] }

// ClassOf returns the class of a node.
func ClassOf(node *Node) NodeClass {
	var text strings.Builder
	fmt.Fprintln(&text, node.Pool, node.Unschedulable, node.Ready, node.Open, node.Declared, node.Taints)
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		value := node.Labels[key]
		if uniquePerNode(node, key) {
			value = ""
		}
		fmt.Fprintf(&text, "%q %q\n", key, value)
	}
	for _, name := range slices.Sorted(maps.Keys(node.Allocatable)) {
		amount := node.Allocatable[name]
		if variesByMachine(name) {
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
		fmt.Fprintln(&text, gpus.Unregistered)
		if err := json.NewEncoder(&text).Encode(gpus); err != nil {
			text.WriteString(node.Name) // It is in a class of its own.
		}
	}
	return NodeClass{unique.Make(text.String())}
}

// uniquePerNode reports whether a label has a different value on every node. A wrong guess about a label costs time but
// does not change answers.
func uniquePerNode(node *Node, key string) bool {
	if NamesNode(key) {
		return true
	}
	return node.Name != "" && strings.Contains(node.Labels[key], node.Name)
}

// NamesNode reports whether a label has a value of its own on every node, by its key.
func NamesNode(key string) bool {
	for _, suffix := range []string{"/hostname", "instance-id", "timestamp"} {
		if strings.HasSuffix(key, suffix) {
			return true
		}
	}
	return false
}

// variesByMachine reports whether machines of one type differ in a resource by some KiB.
func variesByMachine(name string) bool { return name == "memory" || name == "ephemeral-storage" }

// Classes are nodes sorted by class, so that a pod need not be compared with each of thousands of nodes. They are
// immutable.
type Classes struct {
	nodes   []Node
	classes []class
	// rest are declared shapes, which are not nodes.
	rest []Node
}

// class is the nodes of one NodeClass, in the order of all nodes.
type class struct {
	members []int
	// differing are the labels in which the nodes differ. least and most are the bounds of the resources that vary by
	// machine.
	differing   map[string]bool
	least, most Quantities
}

// ClassesOf sorts nodes into classes; kind returns the class of the i-th node. Declared shapes are not sorted into
// classes.
func ClassesOf(nodes []Node, kind func(i int) NodeClass, declared []Node) *Classes {
	l := &Classes{nodes: nodes, rest: declared}
	byKind := map[NodeClass]int{}
	for i := range nodes {
		k := kind(i)
		at, known := byKind[k]
		if !known {
			at = len(l.classes)
			byKind[k] = at
			l.classes = append(l.classes, class{differing: map[string]bool{}, least: Quantities{}, most: Quantities{}})
		}
		l.classes[at].add(nodes, i)
	}
	return l
}

// With returns the same classes of the same nodes with other use of them, in the same order.
func (l *Classes) With(nodes []Node) *Classes {
	return &Classes{nodes: nodes, classes: l.classes, rest: l.rest}
}

func (c *class) add(nodes []Node, i int) {
	node := &nodes[i]
	for name, amount := range node.Allocatable {
		if !variesByMachine(name) {
			continue
		}
		if least, known := c.least[name]; !known || amount < least {
			c.least[name] = amount
		}
		c.most[name] = max(c.most[name], amount)
	}
	if len(c.members) > 0 {
		for key, value := range nodes[c.members[0]].Labels {
			if !c.differing[key] && node.Labels[key] != value {
				c.differing[key] = true
			}
		}
	}
	c.members = append(c.members, i)
}

// For returns the places to compare with a pod of this shape, in the order of all nodes: of each class whose nodes are
// all the same for the pod the first node, with the number of the others in Alike, and every node of the other classes.
// The result is the same as for all nodes.
func (l *Classes) For(shape *PodShape) []Node {
	kinds := l.Kinds([]*PodShape{shape})
	exist := kinds[:len(kinds)-len(l.rest)]
	slices.SortFunc(exist, func(a, b equalNodes) int { return cmp.Compare(a.Members[0], b.Members[0]) })
	places := make([]Node, len(exist), len(kinds))
	for i, kind := range exist {
		places[i] = *kind.Node
		places[i].Alike = len(kind.Members) - 1
	}
	return append(places, l.rest...)
}

// equalNodes is a number of nodes that are the same for some shapes of pods, apart from what their own pods take of
// them.
type equalNodes struct {
	// Node is the first of them. Members are the positions of all of them in the list of nodes; a declared shape has
	// none.
	Node    *Node
	Members []int
}

// Kinds returns what to compare with pods of these shapes: classes whose nodes are the same for all of the shapes, and
// single nodes of the other classes. Declared shapes come last.
func (l *Classes) Kinds(shapes []*PodShape) []equalNodes {
	named := slices.ContainsFunc(shapes, (*PodShape).namesNodes)
	kinds := make([]equalNodes, 0, len(l.classes)+len(l.rest))
	for i := range l.classes {
		class := &l.classes[i]
		if !named && !slices.ContainsFunc(shapes, class.differs) {
			kinds = append(kinds, equalNodes{&l.nodes[class.members[0]], class.members})
			continue
		}
		for k, member := range class.members {
			kinds = append(kinds, equalNodes{&l.nodes[member], class.members[k : k+1]})
		}
	}
	for i := range l.rest {
		kinds = append(kinds, equalNodes{Node: &l.rest[i]})
	}
	return kinds
}

// Nodes returns all nodes, without declared shapes. The result must not be changed.
func (l *Classes) Nodes() []Node { return l.nodes }

// namesNodes reports whether the pods are bound to nodes by name, or to cards of them.
func (p *PodShape) namesNodes() bool {
	return p.NodeName != "" || p.Choice.NamesCards() ||
		slices.ContainsFunc(p.Affinity, func(t NodeTerm) bool { return len(t.Fields) > 0 })
}

// differs reports whether the nodes of the class may differ for the shape.
func (c *class) differs(shape *PodShape) bool {
	for key := range shape.Selector {
		if c.differing[key] {
			return true
		}
	}
	for _, term := range shape.Affinity {
		if slices.ContainsFunc(term.Labels, func(r Requirement) bool { return c.differing[r.Key] }) {
			return true
		}
	}
	for name, want := range shape.Requests {
		if variesByMachine(name) && want > 0 && times(c.least[name], want) != times(c.most[name], want) {
			return true
		}
	}
	return false
}

func times(have, want raydemand.Amount) int64 { return int64(have / want) }
