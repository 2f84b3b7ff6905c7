package reasons

import (
	"fmt"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Preferred says why one group was taken for demand that pods of another, within its limits, could serve as well. What
// is said is true of these two groups; where nothing that is can have decided, it says so.
func (w *Writer) Preferred(c Candidate, other int, given []int64, out *search.Outcome) model.Reason {
	if reason, ok := w.elsewhereBound(c.Item, other, out); ok {
		return reason
	}
	return model.Reason{
		Code:    model.CodeNotChosen,
		Message: "group " + w.Groups[c.Taken].Name + " was taken: " + w.advantage(c, other, given, out),
	}
}

// advantage says what speaks for the group that was taken for demand, in the order in which plans are compared.
func (w *Writer) advantage(c Candidate, other int, given []int64, out *search.Outcome) string {
	a, b := &w.Groups[c.Taken], &w.Groups[other]
	rank, otherRank := c.Item.Rank[a.Shape.Labels], c.Item.Rank[b.Shape.Labels]
	ours, theirs := a.Preference(), b.Preference()
	switch {
	case rank < otherRank:
		return fmt.Sprintf("its labels are the demand's choice %d, before choice %d", rank+1, otherRank+1)
	case w.forMinimum(c.Taken, given):
		return fmt.Sprintf("its pods for the minimum of %d have room for it", a.MinPods)
	case ours.Recoverable > theirs.Recoverable:
		return fmt.Sprintf(
			"it recovers from failed launches, score %s < %s",
			phrase.Decimal(recoveryScore(b.RecoverableScore)),
			phrase.Decimal(recoveryScore(a.RecoverableScore)),
		)
	case ours.Recoverable == theirs.Recoverable && ours.Priority > theirs.Priority:
		return fmt.Sprintf("priority %d < %d", b.Priority, a.Priority)
	case b.Shape.Accelerated && !a.Shape.Accelerated && !w.Policy.GPUForCPU:
		return "it has no accelerator to tie up"
	}
	if ours == theirs {
		if text := w.costsMore(c.Taken, other, given, out); text != "" {
			return text
		}
		if w.Sliced && w.MemoryShare(b.Slice) > w.MemoryShare(a.Slice) {
			return fmt.Sprintf("less memory is wasted, %s against %s", a.Slice.Name(), b.Slice.NameOr("GPUs of unknown memory"))
		}
		if offersAs(a, b) {
			return "it offers the same and comes first by name"
		}
	}
	return "it is in the best plan found for all that waits together"
}

// forMinimum reports whether all that is launched of a group its minimum asks for.
func (w *Writer) forMinimum(i int, given []int64) bool {
	g := &w.Groups[i]
	short := vector.RoundUp(max(0, g.MinPods-g.Remaining()), g.Hosts)
	return short > 0 && given[i] <= short
}

// costsMore compares what is launched of a group with the least that another would have to launch for the same: the
// amounts alone, as if they could be divided at will. It says nothing where the other might not be dearer, or could not
// serve it all.
func (w *Writer) costsMore(taken, other int, given []int64, out *search.Outcome) string {
	a, b := &w.Groups[taken], &w.Groups[other]
	least, able := w.leastPods(taken, other, out)
	if !able || least == 0 || a.MinPods > a.Remaining() {
		return ""
	}
	own, instead := w.Costs.PerReplica[taken]*float64(
		given[taken]/a.Hosts,
	), w.Costs.PerReplica[other]*float64(
		least/b.Hosts,
	)
	if cost.CompareNearly(instead, own) <= 0 {
		return ""
	}
	of := fmt.Sprintf(" (%s against %s)", phrase.Pods(least), phrase.Pods(given[taken]))
	if w.Costs.ByPrice(taken) && w.Costs.ByPrice(other) {
		ours, theirs := *a.Price*float64(given[taken]), *b.Price*float64(least)
		switch {
		case cost.CompareNearly(theirs, ours) <= 0:
			return ""
		case least == given[taken]:
			return fmt.Sprintf("price %s > %s", phrase.Decimal(*b.Price), phrase.Decimal(*a.Price))
		}
		return fmt.Sprintf("price %s > %s%s", phrase.Rounded(theirs), phrase.Rounded(ours), of)
	}
	ours, theirs := w.Size(a.Shape.Total), w.Size(b.Shape.Total)
	switch {
	case theirs > ours && least >= given[taken]:
		return "its pods are smaller"
	case theirs*float64(least) > ours*float64(given[taken]):
		return "less is tied up in all" + of
	}
	return ""
}

// leastPods is the least number of pods of another group, whole replicas, that hold what is launched for on one. It
// reports false where some of that could not be served by the other, or by pods that have to share a label with it.
func (w *Writer) leastPods(taken, other int, out *search.Outcome) (int64, bool) {
	shape := w.Groups[other].Shape
	sum := make([]float64, len(w.Names))
	var least int64
	for _, e := range out.Log {
		if e.Group != taken {
			continue
		}
		if !e.Item.Suits(shape) {
			return 0, false
		}
		for _, t := range e.Item.Need {
			sum[t.Resource] += float64(t.Amount) * float64(e.Count)
		}
		least = max(least, 1)
		if owner, ok := w.Owner(e.Item); ok && owner.Gang.Strategy == raydemand.StrictSpread {
			least = max(least, e.Count)
		}
	}
	for r, amount := range sum {
		if total := float64(shape.Total[r]); amount > 0 && total > 0 {
			least = max(least, int64(min(math.Ceil(amount/total*(1-1e-12)), vector.MaxCount)))
		}
	}
	return vector.RoundUp(least, w.Groups[other].Hosts), true
}

// ownedBy is the gang that an item is of, and by which of its options.
type ownedBy struct {
	Gang   *fleet.Gang
	Option int
}

// Owner finds the gang of an item, if it is of one.
func (w *Writer) Owner(it *vector.Item) (ownedBy, bool) {
	if w.owners == nil {
		w.owners = map[*vector.Item]ownedBy{}
		for _, g := range w.Gangs {
			for o := range g.Options {
				for _, each := range g.Options[o].Items {
					w.owners[each] = ownedBy{g, o}
				}
			}
		}
	}
	owner, ok := w.owners[it]
	return owner, ok
}

// elsewhereBound says why a gang that shares a label could not lie where a group is.
func (w *Writer) elsewhereBound(it *vector.Item, i int, out *search.Outcome) (model.Reason, bool) {
	owner, ok := w.Owner(it)
	if !ok || owner.Gang.TopologyLabel == "" {
		return model.Reason{}, false
	}
	label, g := owner.Gang.TopologyLabel, &w.Groups[i]
	if reason, ok := unlabelled(g, label); ok {
		return reason, true
	}
	at := slices.IndexFunc(out.Runs, func(r placing.Run) bool { return slices.Contains(r.Gangs, owner.Gang) })
	own := fleet.Domain{Topology: w.Topology(label), Value: w.Topology(label).Of[g.Shape.Labels]}
	if at < 0 || out.Runs[at].Within == own {
		return model.Reason{}, false
	}
	if owner.Gang.Held {
		return model.Reason{
			Code:    model.CodeLabels,
			Message: fmt.Sprintf("the gang's other bundles lie on %s", w.valuesOf([]fleet.Domain{out.Runs[at].Within}, label)),
		}, true
	}
	return w.tooSmallDomain(owner, i, own)
}

// unlabelled says that a group's pods lack a label that a gang shares.
func unlabelled(g *fleet.Group, label string) (model.Reason, bool) {
	if g.Carries(label) {
		return model.Reason{}, false
	}
	return model.Reason{
		Code:    model.CodeLabels,
		Message: fmt.Sprintf("it has no label %s, which the gang wants to share", label),
	}, true
}

// tooSmallDomain says that a gang as a whole has no place where a group is, were all of it free for the gang.
func (w *Writer) tooSmallDomain(owner ownedBy, i int, within fleet.Domain) (model.Reason, bool) {
	option := owner.Gang.Options[owner.Option]
	nothing := make([]int64, len(w.Groups))
	l := w.Open(w.Base, nothing)
	enough := len(w.Roomy(l, []fleet.Domain{within, within}, option)) > 0 // of one alone it says nothing
	needed := int64(len(owner.Gang.Alternatives()[owner.Option]))
	if enough && (owner.Gang.Strategy != raydemand.StrictSpread || w.DifferentNodes(l, option, within) >= needed) {
		return model.Reason{}, false
	}
	reason, _ := w.Tightest(i, nothing)
	bundles := fmt.Sprintf("%d bundles", needed)
	if needed == 1 {
		bundles = "bundle"
	}
	reason.Message = fmt.Sprintf(
		"%s has no room for the gang's %s: %s",
		w.valuesOf([]fleet.Domain{within}, owner.Gang.TopologyLabel),
		bundles,
		reason.Message,
	)
	return reason, true
}
