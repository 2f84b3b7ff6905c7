package reasons

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Obstacle explains, with numbers, why one more replica of group i would not serve an item: the amounts that its pods
// lack, the label that does not match, or the limit that the group has reached. It reports false if there is no
// obstacle.
func (w *Writer) Obstacle(i int, it *vector.Item, given []int64) (model.Reason, bool) {
	owner, owned := w.Owner(it)
	if reason, ok := w.awaitedReason(i, it, owner.Gang, given); ok {
		return reason, true
	}
	if reason, ok := w.mismatch(it, w.Groups[i].Shape, w.Groups[i].Labels); ok {
		return reason, true
	}
	if owned {
		if reason, ok := unlabelled(&w.Groups[i], owner.Gang.TopologyLabel); ok {
			return reason, true
		}
	}
	return w.Limit(i, given)
}

// mismatch lists what a shape lacks for an item: amounts, then labels, then properties of its GPUs. The code is that of
// the first.
func (w *Writer) mismatch(it *vector.Item, s *vector.Shape, labels map[string]string) (model.Reason, bool) {
	var lacks []string
	for _, t := range it.Need {
		switch name := w.Names[t.Resource]; {
		case s.Total[t.Resource] < t.Amount:
			lacks = append(lacks, phrase.NeedsHas(name, t.Amount, s.Total[t.Resource]))
		case !s.Total.Has(t):
			lacks = append(lacks, t.Pieces.Needs(name)+", has "+s.Total[t.Resource].String())
		}
	}
	unlike := ""
	if it.Rank[s.Labels] == vector.NoMatch && vector.FirstMatch(it.Request.Selectors, labels) == vector.NoMatch {
		unlike = labelMiss(it.Request.Selectors, labels)
	}
	slice, short := w.sliceMiss(it, s)
	switch {
	case len(lacks) > 0:
		return model.Reason{
			Code:    model.CodeTooSmall,
			Message: phrase.Join("too small: "+strings.Join(lacks, ", "), unlike, slice.Message),
		}, true
	case unlike != "":
		return model.Reason{Code: model.CodeLabels, Message: phrase.Join(unlike, slice.Message)}, true
	}
	return slice, short
}

// sliceMiss explains how the GPUs of a shape fall short of an item's requirement.
func (w *Writer) sliceMiss(it *vector.Item, s *vector.Shape) (model.Reason, bool) {
	if at, known := w.Index[raydemand.GPU]; !known || s.Total[at] == 0 {
		return model.Reason{}, false
	}
	return missedBy(it.Slice, w.SliceOf(s))
}

// Misses counts the reasons why a shape cannot serve an item.
func (w *Writer) Misses(it *vector.Item, s *vector.Shape) (n int) {
	for _, t := range it.Need {
		if !s.Total.Has(t) {
			n++
		}
	}
	if it.Rank[s.Labels] == vector.NoMatch {
		n++
	}
	return n
}

// labelMiss names, for each choice of labels, the first label that does not match: label region is eu, must be us.
func labelMiss(selectors []raydemand.Selector, labels map[string]string) string {
	var misses []string
	for i, selector := range selectors {
		for _, c := range selector {
			if (raydemand.Selector{c}).Matches(labels) {
				continue
			}
			miss := fmt.Sprintf("label %s is missing, must be %s", c.Key, c.Expression())
			if value, present := labels[c.Key]; present {
				miss = fmt.Sprintf("label %s is %s, must be %s", c.Key, value, c.Expression())
			}
			if len(selectors) > 1 {
				miss = fmt.Sprintf("choice %d: %s", i+1, miss)
			}
			misses = append(misses, miss)
			break
		}
	}
	return phrase.List(misses)
}

// passedOver explains why a group without launches was not chosen, for the unserved or launching demand that its pods
// come closest to serving.
func (w *Writer) passedOver(i int, given []int64, out *search.Outcome) (model.Reason, bool) {
	var nearest *Candidate
	misses := 0
	all := w.candidates(out)
	for k := range all {
		if n := w.Misses(all[k].Item, w.Groups[i].Shape); nearest == nil || n < misses {
			nearest, misses = &all[k], n
		}
		if misses == 0 {
			break
		}
	}
	if nearest == nil {
		return model.Reason{}, false
	}
	what := phrase.Describe(nearest.Item.Asked()) + ": "
	if reason, ok := w.Obstacle(i, nearest.Item, given); ok {
		reason.Message = what + reason.Message
		return reason, true
	}
	if nearest.Taken < 0 {
		return model.Reason{}, false
	}
	reason := w.Preferred(*nearest, i, given, out)
	reason.Message = what + reason.Message
	return reason, true
}

// Candidate is demand that pods are launched for, or that needs them. Taken is the group launched for it, or negative.
type Candidate struct {
	Item  *vector.Item
	Taken int
}

// candidates lists unserved demand, then demand that pods are launched for, each item once. The list is kept because it
// is the same for every group.
func (w *Writer) candidates(out *search.Outcome) []Candidate {
	if w.considering != nil {
		return w.considering
	}
	all, known := []Candidate{}, map[*vector.Item]bool{}
	add := func(it *vector.Item, taken int) {
		if !known[it] {
			known[it] = true
			all = append(all, Candidate{it, taken})
		}
	}
	for at, n := range out.Unserved {
		if n > 0 && !w.Requests[at].Deferred {
			add(w.Requests[at], -1)
		}
	}
	for _, g := range out.Gangs {
		if g.Deferred {
			continue
		}
		for _, it := range g.Items() {
			add(it, -1)
		}
	}
	for _, i := range out.Claims {
		for _, it := range w.UnservedOf(i, out) {
			add(it, -1)
		}
	}
	for _, e := range out.Log {
		add(e.Item, e.Group)
	}
	w.considering = all
	return all
}

// offersAs reports whether two groups differ only in name.
func offersAs(g *fleet.Group, other *fleet.Group) bool {
	samePrice := g.Price == other.Price || g.Price != nil && other.Price != nil && *g.Price == *other.Price
	return samePrice && g.Hosts == other.Hosts && g.Shape.Labels == other.Shape.Labels &&
		slices.Equal(g.Shape.Total, other.Shape.Total)
}

func recoveryScore(score *float64) float64 {
	if score == nil {
		return 1
	}
	return *score
}

// verdict is why a group does not serve some items, and by how many of its properties.
type verdict struct {
	model.Reason
	group, misses int
}

// considered are the verdicts on all groups: those whose pods could serve the items, in order, and the others, the
// nearest miss first.
type considered struct{ could, cannot []verdict }

// Considered explains for each group why it does not serve the items. topology is the gang's topology label, or empty.
// open lists the values of that label that are possible, if not all of them are.
func (w *Writer) Considered(items []*vector.Item, given []int64, topology string, open ...fleet.Domain) []string {
	return w.sentences(w.consider(items, given, topology, open...))
}

// consider finds for each group why it does not serve the items.
func (w *Writer) consider(items []*vector.Item, given []int64, topology string, open ...fleet.Domain) considered {
	var all considered
	for i := range w.Groups {
		if miss, ok := w.miss(i, items, given, topology, open); ok {
			all.cannot = append(all.cannot, miss)
			continue
		}
		limit, ok := w.Limit(i, given)
		if !ok {
			limit = w.RoomFor(i, given, vector.BundlesOf(items))
		}
		all.could = append(all.could, verdict{limit, i, 0})
	}
	slices.SortStableFunc(all.cannot, func(a, b verdict) int { return cmp.Compare(a.misses, b.misses) })
	return all
}

// miss explains why pods of a group could not serve the items even if there was room for them. It reports false if they
// could.
func (w *Writer) miss(
	i int,
	items []*vector.Item,
	given []int64,
	topology string,
	open []fleet.Domain,
) (verdict, bool) {
	g, first := &w.Groups[i], items[0]
	unlike := func(message string) (verdict, bool) {
		return verdict{model.Reason{Code: model.CodeLabels, Message: message}, i, 1}, true
	}
	switch {
	case !vector.SuitsAny(items, g.Shape):
		reason, awaited := w.awaitedReason(i, first, nil, given)
		if !awaited {
			reason, _ = w.mismatch(first, g.Shape, g.Labels)
		}
		return verdict{reason, i, w.Misses(first, g.Shape)}, true
	case !g.Carries(topology):
		if owner, _ := w.Owner(first); owner.Gang != nil {
			if reason, ok := w.awaitedReason(i, first, owner.Gang, given); ok {
				return unlike(reason.Message)
			}
		}
		return unlike("it lacks the gang's topology label " + topology)
	case len(open) > 0 && !slices.ContainsFunc(open, func(d fleet.Domain) bool { return d.Admits(g.Shape.Labels) }):
		return unlike("label " + topology + " is " + g.Labels[topology])
	}
	return verdict{}, false
}

// namesGroup lists the codes whose sentences name the group themselves.
var namesGroup = []string{
	model.CodeAtMax,
	model.CodeMaxWorkers,
	model.CodePoolCeiling,
	model.CodePoolPromised,
	model.CodeQuota,
	model.CodeConservative,
	model.CodeInFlight,
}

// sentences writes one sentence for each group.
func (w *Writer) sentences(groups considered) []string {
	var sentences []string
	for _, v := range slices.Concat(groups.could, groups.cannot) {
		text := v.Message
		if !slices.Contains(namesGroup, v.Code) {
			text = "group " + w.Groups[v.group].Name + ": " + text
		}
		sentences = append(sentences, text)
	}
	return sentences
}

// ByChoice names the choice of labels that a group matches, for an item with several.
func (w *Writer) ByChoice(it *vector.Item, group int) string {
	if !it.HasChoices() {
		return ""
	}
	return ", " + phrase.Choice(it.Rank[w.Groups[group].Shape.Labels], it.Alternatives)
}
