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
	return w.limit(i, given)
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
	}
	if nearest == nil {
		return model.Reason{}, false
	}
	what := phrase.Describe(nearest.Item.Request) + ": "
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
		if n > 0 {
			add(w.Requests[at], -1)
		}
	}
	for _, g := range out.Gangs {
		for _, it := range g.Items() {
			add(it, -1)
		}
	}
	for _, i := range out.Claims {
		for _, it := range w.Claims[i].Items {
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

// Considered explains for each group why it does not serve the items: first the groups whose pods could, then the
// others, the nearest miss first. topology is the gang's topology label, or empty. open lists the values of that label
// that are possible, if not all of them are.
func (w *Writer) Considered(items []*vector.Item, given []int64, topology string, open ...fleet.Domain) []string {
	type verdict struct {
		model.Reason
		group, misses int
	}
	var could, cannot []verdict
	for i := range w.Groups {
		g := &w.Groups[i]
		switch {
		case !vector.SuitsAny(items, g.Shape):
			reason, awaited := w.awaitedReason(i, items[0], nil, given)
			if !awaited {
				reason, _ = w.mismatch(items[0], g.Shape, g.Labels)
			}
			cannot = append(cannot, verdict{reason, i, w.Misses(items[0], g.Shape)})
			continue
		case !g.Carries(topology):
			message := "it lacks the gang's topology label " + topology
			if owner, _ := w.Owner(items[0]); owner.Gang != nil {
				if reason, ok := w.awaitedReason(i, items[0], owner.Gang, given); ok {
					message = reason.Message
				}
			}
			cannot = append(cannot, verdict{model.Reason{Code: model.CodeLabels, Message: message}, i, 1})
			continue
		case len(open) > 0 && !slices.ContainsFunc(open, func(d fleet.Domain) bool { return d.Admits(g.Shape.Labels) }):
			message := "label " + topology + " is " + g.Labels[topology]
			cannot = append(cannot, verdict{model.Reason{Code: model.CodeLabels, Message: message}, i, 1})
			continue
		}
		limit, ok := w.limit(i, given)
		if !ok {
			limit = w.roomFor(i, given, vector.BundlesOf(items))
		}
		could = append(could, verdict{limit, i, 0})
	}
	slices.SortStableFunc(cannot, func(a, b verdict) int { return cmp.Compare(a.misses, b.misses) })
	var sentences []string
	for _, v := range append(could, cannot...) {
		text := v.Message
		if v.Code != model.CodeAtMax && v.Code != model.CodeMaxWorkers && v.Code != model.CodePoolCeiling &&
			v.Code != model.CodePoolPromised &&
			v.Code != model.CodeConservative &&
			v.Code != model.CodeInFlight {
			text = "group " + w.Groups[v.group].Name + ": " + text
		}
		sentences = append(sentences, text)
	}
	return sentences
}

// ByChoice names the choice of labels that a group matches, for an item with several.
func (w *Writer) ByChoice(it *vector.Item, group int) string {
	if it.Alternatives < 2 {
		return ""
	}
	return ", " + phrase.Choice(it.Rank[w.Groups[group].Shape.Labels], it.Alternatives)
}
