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
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
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
	// anti-affinity of their own.
	pods      func() []nodePod
	repelling []nodePod
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
	cards   []Card
	order   string
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

// Freed returns the same nodes as if pods that take so much of them, one list for each node by its name, were gone. A
// node that hands out parts of cards, or devices in several ways, stays as it is: it is not known here which of them a
// pod has.
func (s *Nodes) Freed(gone map[string][]Quantities) *Nodes {
	freed, changed := *s, make([]int, 0, len(gone))
	freed.nodes, freed.lots = slices.Clone(s.nodes), maps.Clone(s.lots)
	for name, pods := range gone {
		at, known := s.byName()[name]
		if !known || s.nodes[at].Use == nil || len(s.nodes[at].Devices) > 0 {
			continue
		}
		if cards, _ := freeCards(&s.nodes[at]); len(cards) > 0 {
			continue
		}
		use := *s.nodes[at].Use
		use.Requests = maps.Clone(use.Requests)
		for _, takes := range pods {
			use.Requests.take(takes, 1)
		}
		freed.nodes[at].Use, changed = &use, append(changed, at)
	}
	slices.Sort(changed)
	for i := range s.classes {
		members := s.classes[i].members
		apart := slices.DeleteFunc(slices.Clone(changed), func(at int) bool { return !contains(members, at) })
		if len(apart) == 0 {
			continue
		}
		lots := lotsOf(freed.nodes, apart)
		for _, l := range s.lots[members[0]] {
			l.members = slices.DeleteFunc(slices.Clone(l.members), func(at int) bool { return contains(apart, at) })
			if len(l.members) > 0 {
				lots = append(lots, l)
			}
		}
		freed.lots[members[0]] = lots
	}
	return &freed
}

// contains reports whether a sorted list has a position.
func contains(positions []int, at int) bool {
	_, found := slices.BinarySearch(positions, at)
	return found
}

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
		for _, name := range varying { // machines of one type differ by less
			key = append(strconv.AppendInt(key, WholeUnits(nodes[member].Allocatable[name])>>30, 10), ' ')
		}
		at, known := byUse[string(key)]
		if !known {
			at = len(lots)
			byUse[string(key)] = at
			cards, order := freeCards(&nodes[member])
			lots = append(lots, lot{free: freeOn(&nodes[member]), devices: freeDevices(&nodes[member]), cards: cards,
				order: order})
		}
		lots[at].add(&nodes[member], member)
	}
	return lots
}

// add joins an equal node. Nodes of a lot may differ by some KiB of memory; what all of them have counts.
func (l *lot) add(node *Node, member int) {
	l.members = append(l.members, member)
	for _, name := range varying {
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
		text = append(strconv.AppendBool(text, card.Usable()), '\n')
	}
	return text
}

func appendNumber(text []byte, n *int64) []byte {
	if n == nil {
		return append(text, '?')
	}
	return strconv.AppendInt(text, *n, 10)
}

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

// Node is the part of a Kubernetes node that decides which pods it could hold. It is immutable.
type Node struct {
	Name string
	// Pool is the name of its pool; empty if no label names one.
	Pool   string
	Labels map[string]string
	// Taints are those with the effects NoSchedule and NoExecute, which keep pods away.
	Taints []sharing.Taint
	// CreatedAt is when the node registered; zero if unknown. The devices of a young node may not be announced yet.
	CreatedAt time.Time
	// Unschedulable: the node is cordoned. Ready: its Ready condition is True.
	Unschedulable, Ready bool
	// Allocatable is what the node offers to pods in total, not what is free.
	Allocatable Quantities
	// Capacity is what the machine has. It is kept only for nodes that Karpenter created, because the limits of its
	// pools count it.
	Capacity Quantities
	// Open is what may be supplied on the node although nothing says how much, with the reason, by resource. The empty
	// name stands for every resource that a DeviceClass can supply.
	Open map[string]string
	// Declared says that the node does not exist: it is the declared shape of a new node of a pool without nodes, and
	// Name is the pool's.
	Declared bool
	// Alike is how many other nodes it represents that are the same for the pod in question (Nodes.For).
	Alike int
	// GPUs describes the node's GPUs; nil if they were not read, usually because there are none.
	GPUs *sharing.GPUs
	// Devices are those that pods get in several ways, all of them.
	Devices []Devices
	// Use is what pods take of the node; nil if its pods are unknown, so that it counts as empty. It changes often, so
	// neither Equal nor the class of the node depends on it.
	Use *Use
	// class is the node's class; zero if it is not computed yet (Classed).
	class unique.Handle[string]
}

// Equal reports whether the stored fields are equal: most updates of a Node are heartbeats.
func (n Node) Equal(other Node) bool {
	return n.Name == other.Name && n.Pool == other.Pool && n.Unschedulable == other.Unschedulable &&
		n.Ready == other.Ready && maps.Equal(n.Open, other.Open) && n.CreatedAt.Equal(other.CreatedAt) &&
		slices.Equal(n.Taints, other.Taints) && maps.Equal(n.Labels, other.Labels) &&
		maps.Equal(n.Allocatable, other.Allocatable) &&
		maps.Equal(n.Capacity, other.Capacity) &&
		reflect.DeepEqual(n.GPUs, other.GPUs) && reflect.DeepEqual(n.Devices, other.Devices)
}

// Usable returns how much of a resource pods can really use: what the node reports, without units of unhealthy cards.
func (n *Node) Usable(name string) raydemand.Amount {
	have := n.Allocatable[name]
	if n.GPUs != nil {
		if well, known := n.GPUs.HealthyUnits[name]; known {
			return min(have, raydemand.Whole(well))
		}
	}
	return have
}

// Object converts the node to the form that sharing.Reader reads. Annotations and conditions are not stored; they
// report problems, not kinds.
func (n Node) Object() sharing.NodeObject {
	object := sharing.NodeObject{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable,
		Allocatable: map[string]int64{}}
	for name, amount := range n.Allocatable {
		if strings.Contains(name, "/") {
			object.Allocatable[name] = int64(amount / raydemand.One)
		}
	}
	return object
}

func (n *Node) PoolName() string {
	if n.Declared {
		return n.Name
	}
	return n.Pool
}

// ReadNode returns the node's GPUs, reading them if they were not read before.
func ReadNode(g sharing.Reader, node *Node) sharing.GPUs {
	if node.GPUs != nil {
		return *node.GPUs
	}
	return g.Read(node.Object())
}

// label returns the value of a label. A declared shape is of the pool that it describes, whether it says so or not.
func (n *Node) label(key string) (string, bool) {
	value, set := n.Labels[key]
	if !set && n.Declared && isPoolLabel(key) {
		return n.Name, true
	}
	return value, set
}

func isPoolLabel(key string) bool {
	return slices.ContainsFunc(sharing.PoolLabels, func(row sharing.PoolLabel) bool { return row.Key == key })
}

// Use is what the pods that are bound to a node take of it. Pods that have ended take nothing.
type Use struct {
	// Requests is the sum of their requests, with the number of pods under "pods".
	Requests Quantities
	// Cards is what the pods leave free on each card; nil if single cards are unknown.
	Cards []sharing.Card
	// Devices is what is free of each of the node's Devices; nil if that is unknown.
	Devices []int64
	// Unrecorded names a pod that uses part of a card of which no annotation says which it is; nil if there is none.
	Unrecorded *sharing.Problem
	// Pods is what terms of other pods see of the pods: their namespaces, their labels, and their own anti-affinity.
	Pods []*Neighbors
}

// Classed returns the node with its class, which is expensive to compute: NodesOf then need not. A node that is changed
// afterwards, other than in Use, needs it again.
func (n Node) Classed() Node {
	n.class = classOf(&n)
	return n
}

// classOf returns a text that is equal for nodes that are the same for almost every pod: they differ in name, in labels
// that are unique to each node, and slightly in memory and storage. A fleet of thousands of nodes has some dozens.
func classOf(node *Node) unique.Handle[string] {
	var text strings.Builder
	fmt.Fprintln(&text, node.Pool, node.Unschedulable, node.Ready, node.Open, node.Declared, node.Taints, node.Devices)
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		value := node.Labels[key]
		// A wrong guess about which labels differ on every node costs time but does not change answers.
		if namesNode(key) || node.Name != "" && strings.Contains(value, node.Name) {
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
	return unique.Make(text.String())
}

// namesNode reports whether a label has a value of its own on every node, by its key.
func namesNode(key string) bool {
	return strings.HasSuffix(key, "/hostname") || strings.HasSuffix(key, "instance-id") ||
		strings.HasSuffix(key, "timestamp")
}

// varying are the resources in which machines of one type differ by some KiB.
var varying = []string{"memory", "ephemeral-storage"}

func variesByMachine(name string) bool { return slices.Contains(varying, name) }

// class is the nodes of one class (classOf), in the order of all nodes.
type class struct {
	members []int
	// differing are the labels in which the nodes differ. least and most are the bounds of the resources that vary by
	// machine.
	differing   map[string]bool
	least, most Quantities
}

func classesOf(nodes []Node) (all []class) {
	byClass := map[unique.Handle[string]]int{}
	for i := range nodes {
		own := nodes[i].class
		if own == (unique.Handle[string]{}) {
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
		if variesByMachine(name) && want > 0 && c.least[name]/want != c.most[name]/want {
			return true
		}
	}
	return false
}
