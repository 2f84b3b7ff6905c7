package landing

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// onlyOf reports whether all mismatches are of these kinds; it is true for an empty list.
func onlyOf(mismatches []mismatch, kinds ...mismatchKind) bool {
	return !slices.ContainsFunc(mismatches, func(m mismatch) bool { return !slices.Contains(kinds, m.kind) })
}

// mismatchKind is one way in which a node cannot hold a pod.
type mismatchKind int

// weights order the kinds by how far the node is from holding the pod: a node that lacks a resource altogether, or has
// other labels, is another kind of node; a cordoned node is the right one at the wrong time.
var weights = [...]int{notNamed: 100, notReady: 1, cordoned: 1, tainted: 2, tooSmall: 3, noPods: 3, otherMode: 3,
	cardTooSmall: 3, unhealthy: 1, unselected: 4, unsuited: 4, notAnnounced: 5}

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
		case want <= node.Usable(name) || !p.Counts(name):
		case want <= have:
			list = append(list, mismatch{kind: unhealthy, what: fmt.Sprintf("has %s %s on cards that are well where "+
				"%s is needed", name, node.Usable(name), want)})
		case have <= 0:
			list = append(list, mismatch{kind: notAnnounced, what: name})
		default:
			list = append(list, mismatch{kind: tooSmall, what: name})
		}
	}
	if pods, known := node.Allocatable["pods"]; known && pods < raydemand.One {
		list = append(list, mismatch{kind: noPods})
	}
	if m, misses := p.Share.mismatch(node); misses {
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

// The kinds of mismatches. unhealthy: enough exists, but not on healthy cards. notAnnounced: the node does not have the
// resource at all.
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
	unhealthy
	notAnnounced
)
