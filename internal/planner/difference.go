package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference is what one plan does differently from another.
type Difference struct {
	// Launch counts the additional pods, negative if fewer, by group. Groups without a difference are absent.
	Launch map[string]int `json:"launch"`
	// Stopped pods stop only in the second plan, Spared pods only in the first.
	Stopped []Termination `json:"stopped"`
	Spared  []Termination `json:"spared"`
	// Groups lists the groups whose size changes, sorted by name.
	Groups []GroupDifference `json:"groups"`
	// Demand lists the demand that is served differently.
	Demand []DemandDifference `json:"demand"`
	// Price is the change in the hourly price of launched pods, if both plans know their prices.
	Price *float64 `json:"price,omitempty"`
}

// GroupDifference is one group's desired pods in both plans, 0 in a plan without the group.
type GroupDifference struct {
	Name string `json:"name"`
	From int    `json:"from"`
	To   int    `json:"to"`
}

// DemandDifference describes what becomes of one demand in both plans. A text is empty if that plan has no such demand.
type DemandDifference struct {
	Kind  DemandKind `json:"kind"`
	About string     `json:"about"`
	From  string     `json:"from"`
	To    string     `json:"to"`
}

// Compare returns what the second plan does differently from the first.
func Compare(from, to Plan) Difference {
	d := Difference{
		Launch:  map[string]int{},
		Stopped: without(to.Terminate, from.Terminate),
		Spared:  without(from.Terminate, to.Terminate),
		Groups:  []GroupDifference{},
		Demand:  compareDemand(from.Summary, to.Summary),
	}
	for _, name := range union(from.Launch, to.Launch) {
		if more := to.Launch[name] - from.Launch[name]; more != 0 {
			d.Launch[name] = more
		}
	}
	before, after := desired(from.Groups), desired(to.Groups)
	for _, name := range union(before, after) {
		if before[name] != after[name] {
			d.Groups = append(d.Groups, GroupDifference{name, before[name], after[name]})
		}
	}
	if priced(from) && priced(to) {
		more := priceOf(to) - priceOf(from)
		d.Price = &more
	}
	return d
}

// priced reports whether the price of all launched pods is known.
func priced(p Plan) bool { return p.Price != nil || len(p.Launch) == 0 }

func priceOf(p Plan) float64 {
	if p.Price == nil {
		return 0
	}
	return *p.Price
}

func union[V any](a, b map[string]V) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, m := range []map[string]V{a, b} {
			for name := range maps.Keys(m) {
				if !yield(name) {
					return
				}
			}
		}
	}))
}

func desired(groups []GroupPlan) map[string]int {
	sizes := make(map[string]int, len(groups))
	for _, g := range groups {
		sizes[g.Name] = g.Desired
	}
	return sizes
}

// without returns the pods in all that are not in others.
func without(all, others []Termination) []Termination {
	named := make(map[string]bool, len(others))
	for _, t := range others {
		named[t.Pod] = true
	}
	left := []Termination{}
	for _, t := range all {
		if !named[t.Pod] {
			left = append(left, t)
		}
	}
	return left
}

// compareDemand pairs demand that asks for the same. Equal entries of one plan count together.
func compareDemand(from, to []DemandSummary) []DemandDifference {
	before, after := byAbout(from), byAbout(to)
	differences := []DemandDifference{}
	for _, about := range union(before, after) {
		a, b := before[about], after[about]
		d := DemandDifference{
			Kind:  cmp.Or(a.Kind, b.Kind),
			About: strings.TrimPrefix(about, string(cmp.Or(a.Kind, b.Kind))+" "),
		}
		if a.Asked > 0 {
			d.From = inWords(&a)
		}
		if b.Asked > 0 {
			d.To = inWords(&b)
		}
		if d.From != d.To {
			differences = append(differences, d)
		}
	}
	return differences
}

func byAbout(summaries []DemandSummary) map[string]DemandSummary {
	all := make(map[string]DemandSummary, len(summaries))
	for _, s := range summaries {
		about := string(s.Kind) + " " + s.About()
		sum, there := all[about]
		if !there {
			sum.Kind, sum.Resources, sum.Selectors = s.Kind, s.Resources, s.Selectors
		}
		sum.Join(s)
		all[about] = sum
	}
	return all
}

func inWords(d *DemandSummary) string { return fmt.Sprintf("%d asked, %s", d.Asked, d.Tally()) }
