package nodepool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Landing says where the pods of a worker group could run.
type Landing struct {
	// Nodes counts the nodes that are ready, schedulable and, were they empty, could hold one pod.
	Nodes int
	// Pools are those whose declared shape could hold one pod, by name: a node of it can come even while there is none.
	Pools []string
	// Why is the nearest miss in words when there are neither Nodes nor Pools, else empty.
	Why string
}

// Nowhere reports whether neither a node nor the shape of a pool could hold a pod.
func (l Landing) Nowhere() bool { return l.Nodes == 0 && len(l.Pools) == 0 }

// Land looks for nodes that could hold one pod of this shape. It judges like the scheduler's filters for node name,
// cordon, taints, node affinity and resources, and like those who hand out parts of a card, on empty nodes; what runs
// there already is not looked at.
func (p *PodShape) Land(nodes []Node) Landing {
	var landing Landing
	var misses, nearest []miss
	var closest *Node
	for i := range nodes {
		misses = p.misses(&nodes[i], misses[:0])
		if len(misses) == 0 {
			landing.add(&nodes[i])
			continue
		}
		if closest == nil || distance(misses) < distance(nearest) {
			closest, nearest = &nodes[i], append(nearest[:0], misses...)
		}
	}
	if landing.Nowhere() {
		landing.Why = p.why(nodes, closest, nearest)
	}
	slices.Sort(landing.Pools)
	return landing
}

func (l *Landing) add(node *Node) {
	if node.Declared {
		l.Pools = append(l.Pools, node.Name)
		return
	}
	l.Nodes += 1 + node.Alike
}

// missKind is one way in which a node cannot take a pod.
type missKind int

const (
	notNamed missKind = iota
	notReady
	cordoned
	tainted
	unselected
	unsuited
	tooSmall
	otherMode
	cardTooSmall
	unwell
	absent
)

// weights order the kinds by how far the node is from taking the pod: a node that lacks a resource altogether, or has
// other labels, is another kind of node; one that is cordoned is the right one at the wrong time.
var weights = [...]int{notNamed: 100, notReady: 1, cordoned: 1, tainted: 2, tooSmall: 3, otherMode: 3, cardTooSmall: 3, unwell: 1, unselected: 4, unsuited: 4, absent: 5}

type miss struct {
	kind missKind
	// what is the resource or the label key, or says in words what is wrong with the node's cards.
	what  string
	taint nodegpu.Taint
}

func distance(misses []miss) int {
	sum := 0
	for _, m := range misses {
		sum += weights[m.kind]
	}
	return sum
}

// cordonTaint is what a pod must tolerate to land on a cordoned node.
var cordonTaint = nodegpu.Taint{Key: "node.kubernetes.io/unschedulable", Effect: nodegpu.NoSchedule}

// misses appends every reason why the node cannot take one pod, in no order.
func (p *PodShape) misses(node *Node, list []miss) []miss {
	if p.NodeName != "" && p.NodeName != node.Name {
		return append(list, miss{kind: notNamed})
	}
	if !node.Ready {
		list = append(list, miss{kind: notReady})
	}
	list = p.repelled(node, list)
	for key, value := range p.Selector {
		if have, set := node.Labels[key]; !set || have != value {
			list = append(list, miss{kind: unselected, what: key})
		}
	}
	if !p.suits(node) {
		list = append(list, miss{kind: unsuited})
	}
	for name, want := range p.Requests {
		switch have := node.Allocatable[name]; {
		case want <= node.offers(name) || want <= 0 || checkedElsewhere[name]:
		case want <= have:
			list = append(list, miss{kind: unwell, what: fmt.Sprintf("has %s %s on cards that are well where %s is needed", name, node.offers(name), want)})
		case have <= 0:
			list = append(list, miss{kind: absent, what: name})
		default:
			list = append(list, miss{kind: tooSmall, what: name})
		}
	}
	return p.missesOfCards(node, list)
}

// repelled appends the cordon and the taints that keep the pod away. A pod that is bound past the scheduler meets
// NoExecute taints only. The taints that Kubernetes adds to nodes that are cordoned or not ready say nothing more.
func (p *PodShape) repelled(node *Node, list []miss) []miss {
	if node.Unschedulable && p.NodeName == "" && !p.tolerates(node, cordonTaint) {
		list = append(list, miss{kind: cordoned})
	}
	for _, taint := range node.Taints {
		implied := taint.Key == cordonTaint.Key && node.Unschedulable || !node.Ready && strings.HasPrefix(taint.Key, "node.kubernetes.io/")
		if implied || taint.Effect == nodegpu.NoSchedule && p.NodeName != "" || p.tolerates(node, taint) {
			continue
		}
		list = append(list, miss{kind: tainted, taint: taint})
	}
	return list
}

// checkedElsewhere are resources that no node announces: HAMi's scheduler extender checks them from annotations
// (docs/reference/facts.md#hami-resources).
var checkedElsewhere = map[string]bool{
	gpuinfo.HAMiMemory: true, gpuinfo.HAMiMemoryPercentage: true, gpuinfo.HAMiCores: true, "nvidia.com/priority": true,
}

func (p *PodShape) why(nodes []Node, closest *Node, nearest []miss) string {
	if closest == nil {
		return "there is no node"
	}
	if nearest[0].kind == notNamed {
		return fmt.Sprintf("is bound to node %s, which is not there", p.NodeName)
	}
	if unannounced := p.unannounced(nodes); len(unannounced) > 0 {
		return strings.Join(unannounced, "; ")
	}
	slices.SortFunc(nearest, func(a, b miss) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.what, b.what), cmp.Compare(a.taint.String(), b.taint.String()))
	})
	words := make([]string, len(nearest))
	for i, m := range nearest {
		words[i] = p.tell(closest, m)
	}
	text := "node " + closest.Name + " " + strings.Join(words, " and ")
	if closest.Declared {
		text = "pool " + closest.Name + ", as it is declared, " + strings.Join(words, " and ")
	}
	if n := countAll(nodes); n > 1 {
		text = fmt.Sprintf("the nearest of %d nodes: %s", n, text)
	}
	return text
}

func countAll(nodes []Node) int {
	n := len(nodes)
	for i := range nodes {
		n += nodes[i].Alike
	}
	return n
}

// unannounced tells the requests that no node has at all, which no change of labels or taints would help.
func (p *PodShape) unannounced(nodes []Node) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(p.Requests)) {
		want := p.Requests[name]
		if want > 0 && !checkedElsewhere[name] && !slices.ContainsFunc(nodes, func(n Node) bool { return n.Allocatable[name] > 0 }) {
			list = append(list, fmt.Sprintf("needs %s %s, no node announces it", name, quantity(name, want)))
		}
	}
	return list
}

func (p *PodShape) tell(node *Node, m miss) string {
	switch m.kind {
	case notReady:
		return "is not ready"
	case cordoned:
		return "is cordoned"
	case tainted:
		return "has taint " + m.taint.String() + " which the group does not tolerate"
	case unselected:
		if have, set := node.Labels[m.what]; set {
			return fmt.Sprintf("has label %s=%s where nodeSelector wants %s", m.what, have, p.Selector[m.what])
		}
		return fmt.Sprintf("lacks label %s=%s that nodeSelector wants", m.what, p.Selector[m.what])
	case unsuited:
		return "does not match the required node affinity"
	case otherMode, cardTooSmall, unwell:
		return m.what
	case absent:
		return fmt.Sprintf("has no %s where %s is needed", m.what, quantity(m.what, p.Requests[m.what]))
	default: // tooSmall
		has, needs := node.Allocatable[m.what], p.Requests[m.what]
		if quantity(m.what, has) == quantity(m.what, needs) { // a few bytes too little
			return fmt.Sprintf("has %s %s where %s is needed", m.what, has, needs)
		}
		return fmt.Sprintf("has %s %s where %s is needed", m.what, quantity(m.what, has), quantity(m.what, needs))
	}
}

// quantity writes an amount for people: bytes in MiB or GiB, everything else as it is counted.
func quantity(name string, amount raydemand.Amount) string {
	if name != "memory" && name != "ephemeral-storage" && !strings.HasPrefix(name, "hugepages-") {
		return amount.String()
	}
	mib := float64(amount) / float64(raydemand.One) / (1 << 20)
	if mib < 1024 {
		return fmt.Sprintf("%.0f MiB", mib)
	}
	return fmt.Sprintf("%.1f GiB", mib/1024)
}
