package landing

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// OnlyOf reports whether all mismatches are of these kinds; it is true for an empty list.
func OnlyOf(mismatches []Mismatch, kinds ...MismatchKind) bool {
	return !slices.ContainsFunc(mismatches, func(m Mismatch) bool { return !slices.Contains(kinds, m.kind) })
}

// MismatchKind is one way in which a node cannot hold a pod.
type MismatchKind int

// weights order the kinds by how far the node is from holding the pod: a node that lacks a resource altogether, or has
// other labels, is another kind of node; a cordoned node is the right one at the wrong time.
var weights = [...]int{notNamed: 100, NotReady: 1, Cordoned: 1, Tainted: 2, tooSmall: 3, noPods: 3, otherMode: 3,
	cardTooSmall: 3, Unhealthy: 1, unselected: 4, unsuited: 4, NotAnnounced: 5}

// Mismatch is one reason why a node cannot hold a pod.
type Mismatch struct {
	kind MismatchKind
	// what is the resource or the label key, or describes what is wrong with the node's cards.
	what  string
	taint sharing.Taint
}

func distance(mismatches []Mismatch) int {
	sum := 0
	for _, m := range mismatches {
		sum += weights[m.kind]
	}
	return sum
}

// CordonTaint is what a pod must tolerate to run on a cordoned node.
var CordonTaint = sharing.Taint{Key: "node.kubernetes.io/unschedulable", Effect: sharing.NoSchedule}

// Mismatches appends every reason why the node cannot hold one pod, in no particular order.
func (p *PodShape) Mismatches(node *Node, list []Mismatch) []Mismatch {
	if p.NodeName != "" && p.NodeName != node.Name {
		return append(list, Mismatch{kind: notNamed})
	}
	if !node.Ready {
		list = append(list, Mismatch{kind: NotReady})
	}
	list = p.repelled(node, list)
	for key, value := range p.Selector {
		if have, set := node.label(key); !set || have != value {
			list = append(list, Mismatch{kind: unselected, what: key})
		}
	}
	if !p.suits(node) {
		list = append(list, Mismatch{kind: unsuited})
	}
	for name, want := range p.Requests {
		switch have := node.Allocatable[name]; {
		case want <= node.Usable(name) || !p.Counts(name):
		case want <= have:
			list = append(list, Mismatch{kind: Unhealthy, what: fmt.Sprintf("has %s %s on cards that are well where "+
				"%s is needed", name, node.Usable(name), want)})
		case have <= 0:
			list = append(list, Mismatch{kind: NotAnnounced, what: name})
		default:
			list = append(list, Mismatch{kind: tooSmall, what: name})
		}
	}
	if pods, known := node.Allocatable["pods"]; known && pods < raydemand.One {
		list = append(list, Mismatch{kind: noPods})
	}
	if m, misses := p.Share.mismatch(node); misses {
		list = append(list, m)
	}
	return p.cardMismatches(node, list)
}

// repelled appends the cordon and the taints that keep the pod away. For a pod that is bound without the scheduler,
// only NoExecute taints count. The taints that Kubernetes adds to cordoned and not ready nodes are redundant.
func (p *PodShape) repelled(node *Node, list []Mismatch) []Mismatch {
	if node.Unschedulable && p.NodeName == "" && !p.Tolerates(node, CordonTaint) {
		list = append(list, Mismatch{kind: Cordoned})
	}
	for _, taint := range node.Taints {
		implied := taint.Key == CordonTaint.Key && node.Unschedulable || !node.Ready &&
			strings.HasPrefix(taint.Key, "node.kubernetes.io/")
		if implied || taint.Effect == sharing.NoSchedule && p.NodeName != "" || p.Tolerates(node, taint) {
			continue
		}
		list = append(list, Mismatch{kind: Tainted, taint: taint})
	}
	return list
}

// The kinds of mismatches. Unhealthy: enough exists, but not on healthy cards. NotAnnounced: the node does not have the
// resource at all.
const (
	notNamed MismatchKind = iota
	NotReady
	Cordoned
	Tainted
	unselected
	unsuited
	tooSmall
	noPods
	otherMode
	cardTooSmall
	Unhealthy
	NotAnnounced
)
