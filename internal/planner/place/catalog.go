package place

import (
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
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
	// setKeys are the label sets as text. Their numbers depend on the order of the input, so only the text may order
	// them.
	setKeys []string
	// Sliced: some demand has requirements for its GPUs. A label set then includes the slice of its nodes, nil if
	// unknown, and isolation is the minimum that all work on GPUs accepts.
	Sliced    bool
	slices    []*model.Slice
	isolation nodepool.RequiredIsolation
	// cards are the resources that are counted by card, cardsOf the same by resource; width is the length of a vector.
	cards   []*cards
	cardsOf []*cards
	width   int
}

// Vector holds an amount for each name of the catalog, followed by the free amounts on single cards (cards.go). Vectors
// are shared; clone one before you change it.
type Vector []raydemand.Amount

// Term is one amount of a bundle; zero amounts have no term. Pieces describe how it is spread over cards; nil if
// amounts are simply added.
type Term struct {
	Resource int
	Amount   raydemand.Amount
	Pieces   *pieces
}

func newCatalog(s *model.Snapshot) *Catalog {
	c := &Catalog{
		Index: map[string]int{}, setIndex: map[string]int{}, Sliced: s.AsksForSlices(), isolation: s.Isolation,
	}
	names, keys := map[string]bool{}, map[string]bool{}
	for i := range s.Groups {
		for name := range s.Groups[i].Resources {
			if !raydemand.AddedByRay(name) {
				names[name] = true
			}
		}
	}
	s.EachBundle(func(b raydemand.Bundle) {
		for name := range b {
			names[name] = true
		}
	})
	for _, requests := range s.RequestLists() {
		for i := range requests {
			mentionKeys(keys, requests[i].Selectors)
		}
	}
	for i := range s.Gangs {
		g := &s.Gangs[i]
		mentionKeys(keys, g.BundleSelectors)
		for k := range g.Fallbacks {
			mentionKeys(keys, g.SelectorsOf(k))
		}
		if g.TopologyLabel != "" {
			keys[g.TopologyLabel] = true
		}
	}
	if s.Head != nil {
		// Work without accelerators avoids those of the head even if no demand asks for them.
		for _, name := range raydemand.UnitInstances() {
			if s.Head.Total.Has(name) > 0 || s.Head.Resources.Has(name) > 0 {
				names[name] = true
			}
		}
	}
	c.Names = slices.Sorted(maps.Keys(names))
	for i, name := range c.Names {
		c.Index[name] = i
	}
	c.keys = slices.Sorted(maps.Keys(keys))
	c.newCards(s)
	return c
}

func mentionKeys(keys map[string]bool, selectors []raydemand.Selector) {
	for _, selector := range selectors {
		for _, constraint := range selector {
			keys[constraint.Key] = true
		}
	}
}

// vectorOf converts a node's amounts. Negative amounts become 0.
func (c *Catalog) vectorOf(b raydemand.Bundle) Vector {
	v := make(Vector, c.width)
	for i, name := range c.Names {
		v[i] = max(b.Has(name), 0)
	}
	for _, k := range c.cards {
		v.on(k).Partly[0] = v[k.resource] % raydemand.One
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
		t.Pieces = &pieces{k, raydemand.PiecesOf(amount)}
	}
	return t
}

// labelSet returns the number of a label set, reduced to the relevant keys, on nodes whose GPUs are this slice. Slices
// matter if some demand has requirements for them.
func (c *Catalog) labelSet(labels map[string]string, slice *model.Slice) int {
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
		c.Sets, c.setKeys = append(c.Sets, labels), append(c.setKeys, key.String())
		c.slices = append(c.slices, slice)
	}
	return set
}

// Has reports whether v has as much as the term.
func (v Vector) Has(t Term) bool {
	if t.Pieces == nil {
		return v[t.Resource] >= t.Amount
	}
	return v.on(t.Pieces.cards).Times(&t.Pieces.Pieces, 1) == 1
}

// lacks reports whether v has less of something than a bundle asks for. It ignores how cards are divided, so a bundle
// may not fit although nothing lacks. Of many nodes, it is the fastest way to pass over most.
func (v Vector) lacks(need []Term) bool {
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
			if limit = v.on(t.Pieces.cards).Times(&t.Pieces.Pieces, limit); limit == 0 {
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

// subtract takes n bundles, which the caller knows to fit, from a vector that no one else uses. A negative n returns
// them, unless they use fractions of cards.
func (v Vector) subtract(need []Term, n int64) {
	for _, t := range need {
		if t.Pieces != nil {
			v.on(t.Pieces.cards).Take(&t.Pieces.Pieces, n)
			continue
		}
		v[t.Resource] -= t.Amount * raydemand.Amount(n)
	}
}

// accelerated reports whether v has any accelerator, which CPU-only work must not block. Ray itself protects only GPU
// (ray #43079).
func (c *Catalog) accelerated(v Vector) bool {
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

// worth returns an amount in units that can be added across resources.
func (c *Catalog) worth(resource int, amount raydemand.Amount) float64 {
	if model.IsMemory(c.Names[resource]) {
		return amount.Float() / bytesPerCPU
	}
	return amount.Float()
}

// Suits reports whether a new node of this shape could serve one bundle.
func (it *Item) Suits(s *Shape) bool {
	return it.Rank[s.Labels] != NoMatch && s.Total.Times(it.Need, 1) == 1
}

func SuitsAny(items []*Item, s *Shape) bool {
	return slices.ContainsFunc(items, func(it *Item) bool { return it.Suits(s) })
}

// Shape is what all new nodes of a group have in common, and what any node consists of.
type Shape struct {
	group       int
	Total       Vector
	Labels      int
	Accelerated bool
	// size is what a new node has, as one number (Fleet.sizeOn).
	size float64
}

// SliceOf returns the slice of the GPUs of nodes with this shape; nil if it is unknown or no demand requires one.
func (c *Catalog) SliceOf(s *Shape) *model.Slice { return c.slices[s.Labels] }

func (c *Catalog) Size(v Vector) float64 {
	var sum float64
	for i, amount := range c.Named(v) {
		sum += c.worth(i, amount)
	}
	return sum
}

// acceleratorWorth is the value of one accelerator in CPU cores if prices are unknown: on public clouds a GPU costs
// about as much as fourteen cores. It is a weight, not an order: six nodes with one GPU and sixteen cores each waste
// more than one node with eight GPUs and thirty-two cores.
const acceleratorWorth = 14

// scarcity returns the value of an amount if no price is known.
func (c *Catalog) scarcity(resource int, amount float64) float64 {
	if raydemand.IsUnitInstance(c.Names[resource]) {
		return amount * acceleratorWorth
	}
	return amount
}

// holding returns the scarce resources of a node, as one number.
func (c *Catalog) holding(total Vector) (sum float64) {
	for i, amount := range c.Named(total) {
		sum += c.scarcity(i, c.worth(i, amount))
	}
	return sum
}

// Needed returns the scarce resources that one bundle asks for, as one number above 0.
func (c *Catalog) Needed(it *Item) float64 {
	const least = 1e-3 // a bundle that asks only for a label
	sum := least
	for _, t := range it.Need {
		sum += c.scarcity(t.Resource, c.worth(t.Resource, t.Amount))
	}
	return sum
}

func Sum(counts []int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// MaxCount limits counts of bundles and pods.
const MaxCount = model.MaxCount

func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func RoundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// BundlesOf counts the bundles of items. They never need more pods than that.
func BundlesOf(items []*Item) (bundles int64) {
	for _, it := range items {
		bundles = min(bundles+it.Request.Count, MaxCount)
	}
	return bundles
}
