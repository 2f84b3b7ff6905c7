package pools

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// Incoming is how many pods of a worker group that have no node yet the NodeClaims on their way hold. It counts places,
// not pods: Karpenter does not tie a pod to a claim, and the scheduler binds whichever pod comes first
// (docs/reference/facts.md#karpenter-nodeclaims).
type Incoming struct {
	// Launched are held by machines that the provider has, Requested by those that Karpenter asked for and may not get.
	Launched, Requested int
}

// Pods is how many pods nothing is proven of while the claims are on their way.
func (c Incoming) Pods() int { return c.Launched + c.Requested }

// WaitingPods are pods of one shape that have no node.
type WaitingPods struct {
	Shape *podfit.PodShape
	Pods  int
	// Since is when the oldest of them was created: the scheduler tries it first.
	Since time.Time
}

// PlaceOnClaims says of each entry of waiting how many of its pods the claims hold, at a moment. No claim's room counts
// twice, so all that wait for nodes of one Kubernetes cluster are placed together. bound is what pods take already, by
// node: the node of a registered claim may hold pods before it is complete.
//
// Pods that few claims take are placed first, then those that wait longest: else pods that fit anywhere would fill the
// only nodes that others can use.
func PlaceOnClaims(now time.Time, claims []NodeClaim, bound map[string]podfit.Quantities,
	waiting []WaitingPods) []Incoming {
	classes := claimClassesOf(now, claims, bound)
	order := make([]*placing, len(waiting))
	for i := range waiting {
		order[i] = &placing{index: i, wait: &waiting[i], left: waiting[i].Pods}
		order[i].choose(classes)
	}
	slices.SortStableFunc(order, func(a, b *placing) int {
		return cmp.Or(cmp.Compare(a.choice, b.choice), a.wait.Since.Compare(b.wait.Since))
	})
	list := make([]Incoming, len(waiting))
	for _, progress := range []Progress{OnItsWay, Requested} {
		for _, p := range order {
			placed := p.place(progress)
			if progress == OnItsWay {
				list[p.index].Launched = placed
			} else {
				list[p.index].Requested = placed
			}
		}
	}
	return list
}

// claimClass is claims of one class that have come equally far, by name.
type claimClass struct {
	progress Progress
	template *NodeTemplate
	rooms    []podfit.Quantities
	// full is how many of the first rooms hold no further pod, by what a pod requests. Rooms only shrink, so that stays
	// true, and a fleet whose groups ask for the same looks at each room once.
	full map[string]int
}

// claimClassesOf leaves out the claims of which nothing is to be expected.
func claimClassesOf(now time.Time, claims []NodeClaim, bound map[string]podfit.Quantities) []*claimClass {
	type key struct {
		class    ClaimClass
		progress Progress
	}
	byKey := map[key]*claimClass{}
	var classes []*claimClass
	sorted := slices.SortedFunc(slices.Values(claims), func(a, b NodeClaim) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sorted {
		claim := &sorted[i]
		progress := claim.Progress(now)
		if progress == NotComing {
			continue
		}
		k := key{claim.Class, progress}
		if byKey[k] == nil {
			byKey[k] = &claimClass{progress: progress, template: &claim.Template, full: map[string]int{}}
			classes = append(classes, byKey[k])
		}
		byKey[k].rooms = append(byKey[k].rooms, claim.room(bound[claim.Node]))
	}
	return classes
}

// placing is one entry of what waits, with the classes that take its pods and how many claims these have.
type placing struct {
	index   int
	wait    *WaitingPods
	left    int
	classes []*claimClass
	choice  int
}

func (p *placing) choose(classes []*claimClass) {
	for _, class := range classes {
		if !class.template.refuses(p.wait.Shape) {
			p.classes = append(p.classes, class)
			p.choice += len(class.rooms)
		}
	}
}

// place fills the claims that have come so far, and returns how many pods they hold.
func (p *placing) place(progress Progress) (placed int) {
	for _, class := range p.classes {
		if class.progress == progress {
			placed += p.placeIn(class)
		}
	}
	return placed
}

func (p *placing) placeIn(class *claimClass) (placed int) {
	requests := fmt.Sprint(p.wait.Shape.Requests)
	for i := class.full[requests]; i < len(class.rooms) && p.left > 0; i++ {
		n := int(min(p.wait.Shape.PodsIn(class.rooms[i]), int64(p.left)))
		if n == 0 && class.full[requests] == i {
			class.full[requests]++
		}
		p.wait.Shape.Take(class.rooms[i], n)
		placed, p.left = placed+n, p.left-n
	}
	return placed
}
