package landing

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unique"
)

// NodeClaim is one machine that Karpenter requested from its provider (karpenter.sh/v1), with what shows which pods its
// node will hold. It is immutable.
type NodeClaim struct {
	Name string
	// Pool is the NodePool of the claim, empty for a claim that was created by hand.
	Pool string
	// Template describes the future node: the claim's labels, its requirements, and its permanent taints.
	Template NodeTemplate
	// Requests is the total that the pods request for which Karpenter created the claim.
	Requests Quantities
	// Allocatable is what the node will have for pods; nil until the provider reports it, at the launch.
	Allocatable Quantities
	// Launched: the provider has started the machine; before that, it may fail to. Registered: the Node object exists.
	// NodeReady: the kubelet is ready too, and Lacks says what the node still lacks, for example a device. Initialized:
	// the node is complete, with all its devices.
	Launched, Registered, NodeReady, Initialized bool
	Lacks                                        string
	Deleting                                     bool
	// Node is the name of the Node object after the node has registered.
	Node string
	// CreatedAt is when Karpenter created the claim, LaunchedAt when the provider had the machine, RegisteredAt when
	// the node registered, and NodeReadyAt when its kubelet was first seen ready; zero if unknown.
	CreatedAt, LaunchedAt, RegisteredAt, NodeReadyAt time.Time
	// class is equal for claims that do not differ in anything a pod depends on. Thousands of claims have a few dozen
	// classes, by NodePool and instance type. It is zero if it is not computed yet (Classed).
	class unique.Handle[string]
}

// Karpenter deletes a NodeClaim that is not launched, or not registered, after this time
// (docs/reference/facts.md#karpenter-nodeclaims). An older one proves nothing: Karpenter is not running.
const (
	launchTimeout       = 5 * time.Minute
	registrationTimeout = 15 * time.Minute
)

// Progress is how far a NodeClaim has come.
type Progress int

// NotComing claims bring no further capacity: their node is complete, or will never come. Requested ones may still
// fail. Those further on have a machine: Launched ones no node yet, Registered ones a node that is not ready, and
// NodeReady ones a node that lacks a device or still has a startup taint.
const (
	NotComing Progress = iota
	Requested
	Launched
	Registered
	NodeReady
)

// progress returns what to expect of the claim at a moment.
func (c *NodeClaim) progress(now time.Time) Progress {
	switch {
	case c.Deleting || c.Initialized:
		return NotComing
	case !c.Launched && now.Sub(c.CreatedAt) < launchTimeout:
		return Requested
	case !c.Launched || now.Sub(c.LaunchedAt) >= registrationTimeout:
		return NotComing
	case c.NodeReady:
		return NodeReady
	case c.Registered:
		return Registered
	}
	return Launched
}

// since returns when the claim made that progress; zero if unknown.
func (c *NodeClaim) since(progress Progress) time.Time {
	switch progress {
	case Launched:
		return c.LaunchedAt
	case Registered:
		return c.RegisteredAt
	case NodeReady:
		return c.NodeReadyAt
	}
	return c.CreatedAt
}

// Classed returns the claim with its class, which PlaceOnClaims needs.
func (c NodeClaim) Classed() NodeClaim {
	node := classOf(&Node{Name: c.Name, Pool: c.Pool, Labels: c.Template.Labels, Taints: c.Template.Taints})
	c.class = unique.Make(fmt.Sprint(node.Value(), c.Template.Requirements))
	return c
}

// room returns what pods can use of the claim's node, less what pods already bound to it use. Before the launch, it is
// what the claim was created for.
func (c *NodeClaim) room(bound Quantities) Quantities {
	whole := c.Allocatable
	if whole == nil {
		whole = c.Requests
	}
	left := make(Quantities, len(whole))
	for name, amount := range whole {
		left[name] = max(amount-bound[name], 0)
	}
	return left
}

// Incoming is how many pods of a worker group without a node fit on the NodeClaims that are on their way. It counts
// places, not pods: Karpenter does not tie a pod to a claim, and the scheduler binds whichever pod comes first
// (docs/reference/facts.md#karpenter-nodeclaims).
type Incoming struct {
	// Launched places are on machines that the provider has started, Requested ones on machines that Karpenter has
	// requested and may not get.
	Launched, Requested int
	// Places are the same places by what is known about their machines, those that are furthest on first.
	Places []Coming
}

// Coming is places on machines that have come equally far at the same time.
type Coming struct {
	Pods     int
	Progress Progress
	// Since is when the machines made that progress; zero if unknown. Lacks says what a ready node still lacks.
	Since time.Time
	Lacks string
}

// Pods returns the number of places. Pods that wait for these places are not proven unschedulable while the claims are
// on their way.
func (c Incoming) Pods() int { return c.Launched + c.Requested }

// WaitingPods are pods of one shape that have no node.
type WaitingPods struct {
	Shape *PodShape
	Pods  int
	// Since is when the oldest of them was created: the scheduler tries that pod first.
	Since time.Time
}

// PlaceOnClaims returns, for each entry of waiting, how many of its pods fit on the claims at a moment. No claim's room
// counts twice, so place all pods that wait for nodes of one Kubernetes cluster together. bound is what pods already
// use, by node: the node of a registered claim may hold pods before it is complete.
//
// Pods that fit few claims come first, then those that have waited longest. Otherwise pods that fit anywhere would fill
// the only nodes that other pods can use.
func PlaceOnClaims(
	now time.Time, claims []NodeClaim, bound map[string]Quantities, waiting []WaitingPods,
) []Incoming {
	classes := alikeClaims(now, claims, bound)
	order := make([]*placing, len(waiting))
	for i := range waiting {
		order[i] = &placing{index: i, wait: &waiting[i], left: waiting[i].Pods}
		order[i].choose(classes)
	}
	slices.SortStableFunc(order, func(a, b *placing) int {
		return cmp.Or(cmp.Compare(a.choice, b.choice), a.wait.Since.Compare(b.wait.Since))
	})
	list := make([]Incoming, len(waiting))
	for _, progress := range []Progress{NodeReady, Registered, Launched, Requested} {
		for _, p := range order {
			p.place(progress, &list[p.index])
		}
	}
	return list
}

// claimsAlike is the claims of one class that have made the same progress, by name.
type claimsAlike struct {
	progress Progress
	template *NodeTemplate
	claims   []*NodeClaim
	rooms    []Quantities
	// full is how many of the first rooms have no room for another pod, by what a pod requests. Rooms only shrink, so
	// this stays true, and in a fleet whose groups request the same resources each room is examined once.
	full map[string]int
}

// alikeClaims leaves out the claims that will not bring a node.
func alikeClaims(now time.Time, claims []NodeClaim, bound map[string]Quantities) []*claimsAlike {
	type key struct {
		class    unique.Handle[string]
		progress Progress
	}
	byKey := map[key]*claimsAlike{}
	var classes []*claimsAlike
	sorted := slices.SortedFunc(slices.Values(claims), func(a, b NodeClaim) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sorted {
		claim := &sorted[i]
		progress := claim.progress(now)
		if progress == NotComing {
			continue
		}
		k := key{claim.class, progress}
		if byKey[k] == nil {
			byKey[k] = &claimsAlike{progress: progress, template: &claim.Template, full: map[string]int{}}
			classes = append(classes, byKey[k])
		}
		byKey[k].claims = append(byKey[k].claims, claim)
		byKey[k].rooms = append(byKey[k].rooms, claim.room(bound[claim.Node]))
	}
	return classes
}

// placing is one entry of the waiting pods, with the classes that accept its pods and the number of claims in them.
type placing struct {
	index   int
	wait    *WaitingPods
	left    int
	classes []*claimsAlike
	choice  int
}

func (p *placing) choose(classes []*claimsAlike) {
	for _, class := range classes {
		if class.template.refusal(p.wait.Shape) == nil {
			p.classes = append(p.classes, class)
			p.choice += len(class.rooms)
		}
	}
}

// place fills the claims with this progress, and adds the places to those of the entry.
func (p *placing) place(progress Progress, to *Incoming) {
	requests := fmt.Sprint(p.wait.Shape.Requests)
	for _, class := range p.classes {
		if class.progress != progress {
			continue
		}
		for i := class.full[requests]; i < len(class.rooms) && p.left > 0; i++ {
			n := int(min(p.wait.Shape.podsIn(class.rooms[i]), int64(p.left)))
			switch {
			case n > 0:
				class.rooms[i].take(p.wait.Shape.Requests, int64(n))
				p.left -= n
				to.add(n, class.progress, class.claims[i])
			case class.full[requests] == i:
				class.full[requests]++
			}
		}
	}
}

// add adds places on one claim's machine.
func (c *Incoming) add(pods int, progress Progress, claim *NodeClaim) {
	if progress >= Launched { // the provider has started the machine
		c.Launched += pods
	} else {
		c.Requested += pods
	}
	coming := Coming{Progress: progress, Since: claim.since(progress), Lacks: claim.Lacks}
	for i := range c.Places {
		if coming.Pods = c.Places[i].Pods; coming == c.Places[i] {
			c.Places[i].Pods += pods
			return
		}
	}
	coming.Pods = pods
	c.Places = append(c.Places, coming)
}
