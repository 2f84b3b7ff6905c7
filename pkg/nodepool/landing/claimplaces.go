package landing

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

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
	// AskedAt is when Karpenter asked for the machines, Since when they made that progress; zero if unknown. Lacks says
	// what a ready node still lacks.
	AskedAt, Since time.Time
	Lacks          string
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
		class    claimClass
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
		if !class.template.refuses(p.wait.Shape) {
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
	if progress.hasMachine() {
		c.Launched += pods
	} else {
		c.Requested += pods
	}
	coming := Coming{
		Progress: progress, AskedAt: claim.CreatedAt, Since: claim.since(progress), Lacks: claim.Lacks,
	}
	for i := range c.Places {
		if coming.Pods = c.Places[i].Pods; coming == c.Places[i] {
			c.Places[i].Pods += pods
			return
		}
	}
	coming.Pods = pods
	c.Places = append(c.Places, coming)
}
