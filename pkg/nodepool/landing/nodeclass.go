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

// nodeClass is equal for nodes that are the same for almost every pod: they differ in name, in labels that are unique
// to each node, and slightly in memory and storage. A fleet of thousands of nodes has some dozens of classes.
type nodeClass struct{ text unique.Handle[string] }

// Classed returns the node with its class, which is expensive to compute: NodesOf then need not. A node that is changed
// afterwards, other than in Use, needs it again.
func (n Node) Classed() Node {
	n.class = classOf(&n)
	return n
}

func classOf(node *Node) nodeClass {
	var text strings.Builder
	fmt.Fprintln(&text, node.Pool, node.Unschedulable, node.Ready, node.Open, node.Declared, node.Taints, node.Devices)
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
	return nodeClass{unique.Make(text.String())}
}

// uniquePerNode reports whether a label has a different value on every node. A wrong guess about a label costs time but
// does not change answers.
func uniquePerNode(node *Node, key string) bool {
	if namesNode(key) {
		return true
	}
	return node.Name != "" && strings.Contains(node.Labels[key], node.Name)
}

// namesNode reports whether a label has a value of its own on every node, by its key.
func namesNode(key string) bool {
	for _, suffix := range []string{"/hostname", "instance-id", "timestamp"} {
		if strings.HasSuffix(key, suffix) {
			return true
		}
	}
	return false
}

// variesByMachine reports whether machines of one type differ in a resource by some KiB.
func variesByMachine(name string) bool { return name == "memory" || name == "ephemeral-storage" }

// class is the nodes of one nodeClass, in the order of all nodes.
type class struct {
	members []int
	// differing are the labels in which the nodes differ. least and most are the bounds of the resources that vary by
	// machine.
	differing   map[string]bool
	least, most Quantities
}

// classesOf sorts nodes into classes.
func classesOf(nodes []Node) (all []class) {
	byClass := map[nodeClass]int{}
	for i := range nodes {
		own := nodes[i].class
		if own == (nodeClass{}) {
			own = classOf(&nodes[i])
		}
		at, known := byClass[own]
		if !known {
			at, byClass[own] = len(all), len(all)
			all = append(all, class{differing: map[string]bool{}, least: Quantities{}, most: Quantities{}})
		}
		all[at].add(nodes, i)
	}
	return all
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
func (s *Nodes) For(shape *PodShape) []Node {
	kinds := s.kindsFor([]*PodShape{shape})
	exist := kinds[:len(kinds)-len(s.Shapes)]
	slices.SortFunc(exist, func(a, b equalNodes) int { return cmp.Compare(a.Members[0], b.Members[0]) })
	places := make([]Node, len(exist), len(kinds))
	for i, kind := range exist {
		places[i] = *kind.Node
		places[i].Alike = len(kind.Members) - 1
	}
	return append(places, s.Shapes...)
}

// equalNodes is a number of nodes that are the same for some shapes of pods, apart from what their own pods take of
// them.
type equalNodes struct {
	// Node is the first of them. Members are the positions of all of them in the list of nodes; a declared shape has
	// none.
	Node    *Node
	Members []int
}

// kindsFor returns what to compare with pods of these shapes: classes whose nodes are the same for all of them, and
// single nodes of the other classes. Declared shapes come last.
func (s *Nodes) kindsFor(shapes []*PodShape) []equalNodes {
	named := slices.ContainsFunc(shapes, (*PodShape).namesNodes)
	kinds := make([]equalNodes, 0, len(s.classes)+len(s.Shapes))
	for i := range s.classes {
		class := &s.classes[i]
		if !named && !slices.ContainsFunc(shapes, class.differs) {
			kinds = append(kinds, equalNodes{&s.nodes[class.members[0]], class.members})
			continue
		}
		for k, member := range class.members {
			kinds = append(kinds, equalNodes{&s.nodes[member], class.members[k : k+1]})
		}
	}
	for i := range s.Shapes {
		kinds = append(kinds, equalNodes{Node: &s.Shapes[i]})
	}
	return kinds
}

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
