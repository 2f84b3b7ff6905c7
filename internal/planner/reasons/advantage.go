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

// Preferred explains why one group was chosen for demand that another group could also serve within its limits. The
// sentence is true of these two groups. If no difference between them can have decided, the sentence says so.
func (w *Writer) Preferred(c Candidate, other int, given []int64, out *search.Outcome) model.Reason {
	if reason, ok := w.elsewhereBound(c.Item, other, out); ok {
		return reason
	}
	return model.Reason{
		Code:    model.CodeNotChosen,
		Message: "group " + w.Groups[c.Taken].Name + " was chosen: " + w.advantage(c, other, given, out),
	}
}

// advantage names the first advantage of the chosen group, in the order in which plans are compared.
func (w *Writer) advantage(c Candidate, other int, given []int64, out *search.Outcome) string {
	a, b := &w.Groups[c.Taken], &w.Groups[other]
	rank, otherRank := c.Item.Rank[a.Shape.Labels], c.Item.Rank[b.Shape.Labels]
	ours, theirs := a.Preference(), b.Preference()
	switch {
	case ours.Known && b.Waiting():
		return fmt.Sprintf("a node can hold its pods now; those of group %s wait (%s)", b.Name, b.NodeFit.Why)
	case ours.Known && !theirs.Known:
		return fmt.Sprintf(
			"a node can hold its pods; nothing shows that one can hold a pod of group %s (%s)",
			b.Name,
			b.NodeFit.Why,
		)
	case rank < otherRank && c.Item.Request.Moving:
		return "the work runs in this group, and may need the labels of its nodes"
	case rank < otherRank:
		return fmt.Sprintf("its labels match choice %d of the demand, before choice %d", rank+1, otherRank+1)
	case w.forMinimum(c.Taken, given):
		return fmt.Sprintf("the pods for its minimum of %d have room", a.MinPods)
	case ours.Recoverable > theirs.Recoverable:
		return fmt.Sprintf(
			"it recovers better from failed launches, score %s < %s",
			phrase.Decimal(recoveryScore(b.RecoverableScore)),
			phrase.Decimal(recoveryScore(a.RecoverableScore)),
		)
	case ours.Recoverable == theirs.Recoverable && ours.Priority > theirs.Priority:
		return fmt.Sprintf("priority %d < %d", b.Priority, a.Priority)
	case b.Shape.Accelerated && !a.Shape.Accelerated:
		return "it has no accelerators, and the demand needs none"
	}
	if ours == theirs {
		if text := w.costsMore(c.Taken, other, given, out); text != "" {
			return text
		}
		if w.Sliced && w.MemoryShare(b.Slice) > w.MemoryShare(a.Slice) {
			return fmt.Sprintf(
				"it wastes less GPU memory, %s instead of %s",
				a.Slice.Name(),
				b.Slice.NameOr("GPUs of unknown memory"),
			)
		}
		if offersAs(a, b) {
			return "both offer the same, and its name sorts first"
		}
	}
	return "it is part of the best plan found for all waiting demand"
}

// forMinimum reports whether the group's minimum explains all pods that the plan launches for it.
func (w *Writer) forMinimum(i int, given []int64) bool {
	g := &w.Groups[i]
	short := vector.RoundUp(max(0, g.MinPods-g.Remaining()), g.Hosts)
	return short > 0 && given[i] <= short
}

// costsMore compares the launched pods of a group with the fewest that another group would have to launch for the same
// demand. It compares amounts alone, as if they were divisible. It returns an empty string if the other group might not
// cost more, or could not serve all of the demand.
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
	of := fmt.Sprintf(" (%s instead of %s)", phrase.Pods(least), phrase.Pods(given[taken]))
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
		return "it uses less in total" + of
	}
	return ""
}

// leastPods returns the fewest pods of another group, in whole replicas, that hold what is launched on one group. It
// reports false if the other group cannot serve some of that demand, or if some of it must share a label with other
// pods.
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

// ownedBy names the gang that an item belongs to, and the number of the option.
type ownedBy struct {
	Gang   *fleet.Gang
	Option int
}

// Owner returns the gang that an item belongs to, if any.
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

// elsewhereBound explains why a gang with a topology label cannot be placed where a group's pods are.
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
			Code: model.CodeLabels,
			Message: fmt.Sprintf(
				"the gang's other bundles are on %s",
				w.valuesOf([]fleet.Domain{out.Runs[at].Within}, label),
			),
		}, true
	}
	return w.tooSmallDomain(owner, i, own)
}

// unlabelled reports that a group's pods lack the topology label of a gang.
func unlabelled(g *fleet.Group, label string) (model.Reason, bool) {
	if g.Carries(label) {
		return model.Reason{}, false
	}
	return model.Reason{
		Code:    model.CodeLabels,
		Message: fmt.Sprintf("it lacks the gang's topology label %s", label),
	}, true
}

// tooSmallDomain reports that a whole gang does not fit in a group's domain, even if all of it were free.
func (w *Writer) tooSmallDomain(owner ownedBy, i int, within fleet.Domain) (model.Reason, bool) {
	option := owner.Gang.Options[owner.Option]
	nothing := make([]int64, len(w.Groups))
	l := w.Open(w.Base, nothing)
	enough := len(w.Roomy(l, []fleet.Domain{within, within}, option)) > 0 // Roomy does not look at a single domain
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
