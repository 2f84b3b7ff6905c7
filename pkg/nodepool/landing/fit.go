package landing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Fit finds the nodes that could hold one pod of this shape, and if there is none, why. It applies the rules of the
// scheduler's filters for node name, cordon, taints, node affinity and resources, and of the schedulers that hand out
// parts of a card, to empty nodes; it ignores the pods that run there, and what pools may add.
func (p *PodShape) Fit(nodes []Node) Answer { return p.compare(nodes, func(*Node, []mismatch) {}) }

// compare is Fit, and shows why each node cannot hold a pod, with no reasons if it can.
func (p *PodShape) compare(nodes []Node, show func(*Node, []mismatch)) (a Answer) {
	var mismatches, nearest []mismatch
	var closest *Node
	for i := range nodes {
		node := &nodes[i]
		mismatches = p.mismatches(node, mismatches[:0])
		show(node, mismatches)
		switch {
		case len(mismatches) > 0:
			if closest == nil || distance(mismatches) < distance(nearest) {
				closest, nearest = node, append(nearest[:0], mismatches...)
			}
		case node.Declared:
			a.Shapes = append(a.Shapes, node.Name)
		default:
			a.Nodes += 1 + node.Alike
		}
	}
	if a.None() {
		a.Why = p.why(nodes, closest, nearest)
	}
	slices.Sort(a.Shapes)
	return a
}

func (p *PodShape) why(nodes []Node, closest *Node, nearest []mismatch) string {
	if closest == nil {
		return "there is no node"
	}
	if nearest[0].kind == notNamed {
		return fmt.Sprintf("is bound to node %s, which is not there", p.NodeName)
	}
	if unannounced := p.missingEverywhere(nodes); len(unannounced) > 0 {
		return strings.Join(unannounced, "; ")
	}
	slices.SortFunc(nearest, func(a, b mismatch) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.what, b.what),
			cmp.Compare(a.taint.String(), b.taint.String()))
	})
	words := make([]string, len(nearest))
	for i, m := range nearest {
		words[i] = p.describe(closest, m)
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

// missingEverywhere returns the requests that no node has at all, which no change of labels or taints would help.
func (p *PodShape) missingEverywhere(nodes []Node) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(p.Requests)) {
		want := p.Requests[name]
		if p.counts(name) &&
			!slices.ContainsFunc(nodes, func(n Node) bool { return n.Allocatable[name] > 0 }) {
			text := fmt.Sprintf("needs %s %s, no node announces it%s", name, quantity(name, want),
				p.instead(name, nodes))
			if template, is := sharing.TemplateOf(name); is {
				text = "no node has devices for a claim of ResourceClaimTemplate " + template
				if class := p.AbsentClasses[name]; class != "" {
					text += ": DeviceClass " + class + ", which it requests, does not exist"
				}
			}
			list = append(list, text+openOn(name, nodes))
		}
	}
	return list
}

// openOn says which of the nodes may supply a resource, and why.
func openOn(name string, nodes []Node) string {
	for i := range nodes {
		switch why := nodes[i].open(name); {
		case why == "":
		case nodes[i].Declared:
			return "; new nodes of pool " + nodes[i].Name + " may have it: " + why
		default:
			return "; node " + nodes[i].Name + " may have it: " + why
		}
	}
	return ""
}

// instead says which GPUs a node shows that could hold the pod if it announced this resource: GPUs that no resource
// offers, or that the vendor's device plugin announces under another name.
func (p *PodShape) instead(name string, nodes []Node) string {
	if _, err := (gpuinfo.Names{}).Resource(name); err != nil {
		return ""
	}
	vendor, _, _ := strings.Cut(name, "/")
	for i := range nodes {
		node := &nodes[i]
		if node.GPUs == nil || !onlyOf(p.mismatches(node, nil), notAnnounced, notReady, cordoned) {
			continue
		}
		if label, is := node.GPUs.Unsupplied(); is {
			return fmt.Sprintf("; node %s shows GPUs (%s), and no device plugin announces them", node.Name, label)
		}
		for _, other := range slices.Sorted(maps.Keys(node.GPUs.Units)) {
			if units := node.GPUs.Units[other]; units > 0 && strings.HasPrefix(other, vendor+"/") {
				return fmt.Sprintf("; node %s announces %s %d instead", node.Name, other, units)
			}
		}
	}
	return ""
}

func (p *PodShape) describe(node *Node, m mismatch) string {
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
	case noPods:
		return "takes no pods (allocatable pods 0)"
	case otherMode, cardTooSmall, uncounted, unhealthy:
		return m.what
	case notAnnounced:
		text := fmt.Sprintf("has no %s where %s is needed", m.what, quantity(m.what, p.Requests[m.what]))
		if template, is := sharing.TemplateOf(m.what); is {
			text = "has no devices for a claim of ResourceClaimTemplate " + template
		}
		if why := node.open(m.what); why != "" {
			text += " (but may have some: " + why + ")"
		}
		return text
	default: // tooSmall
		has, needs := node.Allocatable[m.what], p.Requests[m.what]
		if quantity(m.what, has) == quantity(m.what, needs) { // A few bytes are missing.
			return fmt.Sprintf("has %s %s where %s is needed", m.what, has, needs)
		}
		return fmt.Sprintf("has %s %s where %s is needed", m.what, quantity(m.what, has), quantity(m.what, needs))
	}
}

// quantity formats an amount for people: bytes in MiB or GiB, everything else as it is counted.
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

// FittingNodes returns the nodes that could hold a pod of this shape if they were empty.
func (p *PodShape) FittingNodes(nodes []Node) []*Node {
	var list []*Node
	var mismatches []mismatch
	for i := range nodes {
		if mismatches = p.mismatches(&nodes[i], mismatches[:0]); len(mismatches) == 0 {
			list = append(list, &nodes[i])
		}
	}
	return list
}

// onlyOf reports whether all mismatches are of these kinds; it is true for an empty list.
func onlyOf(mismatches []mismatch, kinds ...mismatchKind) bool {
	return !slices.ContainsFunc(mismatches, func(m mismatch) bool { return !slices.Contains(kinds, m.kind) })
}

// mismatchKind is one way in which a node cannot hold a pod.
type mismatchKind int

// weights order the kinds by how far the node is from holding the pod: a node that lacks a resource altogether, or has
// other labels, is another kind of node; a cordoned node is the right one at the wrong time.
var weights = [...]int{notNamed: 100, notReady: 1, cordoned: 1, tainted: 2, tooSmall: 3, noPods: 3, otherMode: 3,
	cardTooSmall: 3, uncounted: 1, unhealthy: 1, unselected: 4, unsuited: 4, notAnnounced: 5}

// mismatch is one reason why a node cannot hold a pod.
type mismatch struct {
	kind mismatchKind
	// what is the resource or the label key, or describes what is wrong with the node's cards.
	what  string
	taint sharing.Taint
}

func distance(mismatches []mismatch) int {
	sum := 0
	for _, m := range mismatches {
		sum += weights[m.kind]
	}
	return sum
}

// cordonTaint is what a pod must tolerate to run on a cordoned node.
var cordonTaint = sharing.Taint{Key: "node.kubernetes.io/unschedulable", Effect: sharing.NoSchedule}

// mismatches appends every reason why the node cannot hold one pod, in no particular order.
func (p *PodShape) mismatches(node *Node, list []mismatch) []mismatch {
	if p.NodeName != "" && p.NodeName != node.Name {
		return append(list, mismatch{kind: notNamed})
	}
	if !node.Ready {
		list = append(list, mismatch{kind: notReady})
	}
	list = p.repelled(node, list)
	for key, value := range p.Selector {
		if have, set := node.label(key); !set || have != value {
			list = append(list, mismatch{kind: unselected, what: key})
		}
	}
	if !p.suits(node) {
		list = append(list, mismatch{kind: unsuited})
	}
	for name, want := range p.Requests {
		switch have := node.Allocatable[name]; {
		case want <= have && OfShares(node.GPUs, p.Requests, name) > have:
			cards := int64(have/raydemand.One) / node.GPUs.SharedCards[name].Shares
			list = append(list, mismatch{kind: cardTooSmall, what: fmt.Sprintf("has %d cards of %s where %s are needed",
				cards, name, want)})
		case want <= node.Usable(name) || !p.counts(name):
		case want <= have:
			what := fmt.Sprintf("has %s %s on healthy cards where %s is needed", node.Usable(name), name, want)
			if why := node.GPUs.AllBad(); why != "" {
				what += ": " + why
			}
			list = append(list, mismatch{kind: unhealthy, what: what})
		case have <= 0:
			list = append(list, mismatch{kind: notAnnounced, what: name})
		default:
			list = append(list, mismatch{kind: tooSmall, what: name})
		}
	}
	if pods, known := node.Allocatable["pods"]; known && pods < raydemand.One {
		list = append(list, mismatch{kind: noPods})
	}
	if len(node.Devices) > 0 && p.fitDevices(node, 1) == 0 {
		list = append(list, mismatch{kind: cardTooSmall, what: "has fewer devices than all claims of a pod take"})
	}
	if m, misses := p.shareMismatch(node); misses {
		list = append(list, m)
	}
	return p.cardMismatches(node, list)
}

// repelled appends the cordon and the taints that keep the pod away. For a pod that is bound without the scheduler,
// only NoExecute taints count. The taints that Kubernetes adds to cordoned and not ready nodes are redundant.
func (p *PodShape) repelled(node *Node, list []mismatch) []mismatch {
	if node.Unschedulable && p.NodeName == "" && !p.Tolerates(node, cordonTaint) {
		list = append(list, mismatch{kind: cordoned})
	}
	for _, taint := range node.Taints {
		implied := taint.Key == cordonTaint.Key && node.Unschedulable || !node.Ready &&
			strings.HasPrefix(taint.Key, "node.kubernetes.io/")
		if implied || taint.Effect == sharing.NoSchedule && p.NodeName != "" || p.Tolerates(node, taint) {
			continue
		}
		list = append(list, mismatch{kind: tainted, taint: taint})
	}
	return list
}

// The kinds of mismatches. uncounted: it is unknown how many pods a card holds. unhealthy: enough exists, but not on
// healthy cards. notAnnounced: the node does not have the resource at all.
const (
	notNamed mismatchKind = iota
	notReady
	cordoned
	tainted
	unselected
	unsuited
	tooSmall
	noPods
	otherMode
	cardTooSmall
	uncounted
	unhealthy
	notAnnounced
)
