// Package vector turns demand and capacity into numbers: a Catalog numbers the resource names and label sets of one
// snapshot, a Vector holds an amount for each, an Item is a count of equal bundles, a Shape is what a node consists of.
// It computes what fits where, and how often. It must not know which nodes exist, what they cost, or what is planned.
package vector

import (
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Catalog numbers the resource names and label sets that one snapshot can distinguish, so that inner loops compare
// integers in slices. It leaves out names that no demand and no group mentions: every Ray node has a resource
// (node:10.0.0.7) and a label value (ray.io/node-id) of its own, which would make all nodes different.
type Catalog struct {
	Names    []string // in byte order
	Index    map[string]int
	keys     []string // label keys in selectors
	Sets     []map[string]string
	setIndex map[string]int
	// Sliced: some demand has requirements for its GPUs. A label set then includes the slice of its nodes, nil if
	// unknown, and isolation is the minimum that all work on GPUs accepts.
	Sliced    bool
	slices    []*model.Slice
	isolation nodepool.RequiredIsolation
	// cards are the resources that are counted by card, cardsOf the same by resource; width is the length of a vector.
	cards   []*cards
	cardsOf []*cards
	Width   int
}

// MostIndexed is the number of resource names up to which an index of what fits is worth its memory.
const MostIndexed = 32

// Vector holds an amount for each name of the catalog, followed by the free amounts on single cards (cards.go). Vectors
// are shared; clone one before you change it.
type Vector []raydemand.Amount

// term is one amount of a bundle; zero amounts have no term. Pieces describe how it is spread over cards; nil if
// amounts are simply added.
type Term struct {
	Resource int
	Amount   raydemand.Amount
	Pieces   *pieces
}

func NewCatalog(s *model.Snapshot) *Catalog {
	c := &Catalog{Index: map[string]int{}, setIndex: map[string]int{}, Sliced: asksForSlices(s), isolation: s.Isolation}
	names, keys := map[string]bool{}, map[string]bool{}
	mention := func(b raydemand.Bundle) {
		for name := range b {
			names[name] = true
		}
	}
	for i := range s.Groups {
		for name := range s.Groups[i].Resources {
			if !AddedByRay(name) {
				names[name] = true
			}
		}
	}
	for _, requests := range s.RequestLists() {
		for i := range requests {
			mention(requests[i].Bundle)
			mentionKeys(keys, requests[i].Selectors)
		}
	}
	for i := range s.Gangs {
		mentionGang(&s.Gangs[i], mention, keys)
	}
	if s.Head != nil {
		mentionAccelerators(names, s.Head)
	}
	c.Names = slices.Sorted(maps.Keys(names))
	for i, name := range c.Names {
		c.Index[name] = i
	}
	c.keys = slices.Sorted(maps.Keys(keys))
	c.newCards(s)
	return c
}

// AddedByRay reports whether Ray adds a resource of this name when a node starts. A group that has had nodes is known
// to have it, and an equal group without nodes is not, so it counts only if some demand asks for it.
func AddedByRay(name string) bool {
	return name == "object_store_memory" || strings.HasPrefix(name, "accelerator_type:") ||
		strings.HasPrefix(name, "node:")
}

// mentionAccelerators adds the head's accelerators, so that work without accelerators avoids the head even if no demand
// asks for them.
func mentionAccelerators(names map[string]bool, head *model.Node) {
	for _, name := range raydemand.UnitInstances() {
		if head.Total.Has(name) > 0 || head.Resources.Has(name) > 0 {
			names[name] = true
		}
	}
}

func mentionGang(g *raydemand.Gang, mention func(raydemand.Bundle), keys map[string]bool) {
	for _, b := range g.Bundles {
		mention(b)
	}
	for _, alternative := range g.Fallbacks {
		for _, b := range alternative {
			mention(b)
		}
	}
	for i := range g.Fallbacks {
		mentionKeys(keys, g.SelectorsOf(i))
	}
	mentionKeys(keys, g.BundleSelectors)
	if g.TopologyLabel != "" {
		keys[g.TopologyLabel] = true
	}
}

func mentionKeys(keys map[string]bool, selectors []raydemand.Selector) {
	for _, selector := range selectors {
		for _, constraint := range selector {
			keys[constraint.Key] = true
		}
	}
}

// VectorOf converts a node's amounts. Negative amounts become 0.
func (c *Catalog) VectorOf(b raydemand.Bundle) Vector {
	v := make(Vector, c.Width)
	for i, name := range c.Names {
		v[i] = max(b.Has(name), 0)
	}
	for _, k := range c.cards {
		v.partly(k)[0] = v[k.resource] % raydemand.One
	}
	return v
}

// NeedOf converts the amounts of one bundle, by resource number.
func (c *Catalog) NeedOf(b raydemand.Bundle) []Term {
	terms := make([]Term, 0, len(b))
	for name, amount := range b {
		if amount > 0 {
			terms = append(terms, c.term(c.Index[name], amount))
		}
	}
	slices.SortFunc(terms, func(a, b Term) int { return a.Resource - b.Resource })
	return terms
}

func (c *Catalog) term(resource int, amount raydemand.Amount) Term {
	t := Term{Resource: resource, Amount: amount}
	if k := c.cardsOf[resource]; k != nil {
		t.Pieces = k.piecesOf(amount)
	}
	return t
}

// LabelSet returns the number of a label set, reduced to the relevant keys, on nodes whose GPUs are this slice. Slices
// matter if some demand has requirements for them.
func (c *Catalog) LabelSet(labels map[string]string, slice *model.Slice) int {
	var key strings.Builder
	if !c.Sliced {
		slice = nil
	}
	if slice != nil {
		key.WriteString(slice.Key() + "\x00")
	}
	for _, k := range c.keys {
		if value, ok := labels[k]; ok {
			key.WriteString(k + "\x00" + value + "\x00")
		}
	}
	set, known := c.setIndex[key.String()]
	if !known {
		set = len(c.Sets)
		c.setIndex[key.String()] = set
		c.Sets = append(c.Sets, labels)
		c.slices = append(c.slices, slice)
	}
	return set
}

// Has reports whether v has as much as the term.
func (v Vector) Has(t Term) bool {
	if t.Pieces == nil {
		return v[t.Resource] >= t.Amount
	}
	return v.timesOnCards(t.Pieces, 1) == 1
}

// Lacks reports whether v has less of something than a bundle asks for. It ignores how cards are divided, so a bundle
// may not fit although nothing lacks. Of many nodes, it is the fastest way to pass over most.
func (v Vector) Lacks(need []Term) bool {
	for i := range need {
		if v[need[i].Resource] < need[i].Amount {
			return true
		}
	}
	return false
}

// Times returns how many bundles fit into v, up to limit. A bundle that asks for nothing always fits.
func (v Vector) Times(need []Term, limit int64) int64 {
	for _, t := range need {
		if t.Pieces != nil {
			limit = min(limit, v.timesOnCards(t.Pieces, limit))
			if limit == 0 {
				return 0
			}
			continue
		}
		if v[t.Resource] < t.Amount {
			return 0 // most bundles do not fit, and a division is slow
		}
		limit = min(limit, int64(v[t.Resource]/t.Amount))
	}
	return limit
}

// Subtract takes n bundles, which the caller knows to fit, from a vector that no one else uses. A negative n returns
// them, unless they use fractions of cards.
func (v Vector) Subtract(need []Term, n int64) {
	for _, t := range need {
		if t.Pieces != nil {
			v.takeFromCards(t.Pieces, n)
			continue
		}
		v[t.Resource] -= t.Amount * raydemand.Amount(n)
	}
}

// TimesAdded and subtractAdded are the same for needs without terms on cards. The knapsack search spends its time in
// them.
func (v Vector) TimesAdded(need []Term, limit int64) int64 {
	for _, t := range need {
		if v[t.Resource] < t.Amount {
			return 0 // most bundles do not fit, and a division is slow
		}
		limit = min(limit, int64(v[t.Resource]/t.Amount))
	}
	return limit
}

func (v Vector) SubtractAdded(need []Term, n int64) {
	for _, t := range need {
		v[t.Resource] -= t.Amount * raydemand.Amount(n)
	}
}

// Accelerated reports whether v has any accelerator, which CPU-only work must not block. Ray itself protects only GPU
// (ray #43079).
func (c *Catalog) Accelerated(v Vector) bool {
	for i, amount := range c.Named(v) {
		if amount > 0 && raydemand.IsUnitInstance(c.Names[i]) {
			return true
		}
	}
	return false
}

// bytesPerCPU makes memory comparable with CPUs: 4 GiB per core, as general-purpose machines have it. Without it, bytes
// dominate every sum, as they do in Ray's own score.
const bytesPerCPU = 4 << 30

// Worth returns an amount in units that can be added across resources.
func (c *Catalog) Worth(resource int, amount raydemand.Amount) float64 {
	if phrase.IsMemory(c.Names[resource]) {
		return amount.Float() / bytesPerCPU
	}
	return amount.Float()
}
