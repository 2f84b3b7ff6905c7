package reasons

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Advice returns what the operator can do to serve an item if no group has large enough slices, or the pools of the
// groups that have them are full: declare fewer GPUs for the same devices, or cut existing cards differently. It names
// the current and the new layout, the pool and the number of cards. It returns an empty string if neither helps,
// because something else is short too, or if the cards are unknown.
func (w *Writer) Advice(it *vector.Item, given []int64, count int64) string {
	if it.Request.Slice == nil || it.Slice.Memory == 0 && it.Slice.Compute == 0 || !w.onlyACutHelps(it, given) ||
		w.rounded(it) {
		return ""
	}
	var advice []string
	seen := map[string]bool{}
	for i := range w.Groups {
		g := &w.Groups[i]
		if text := w.overDeclared(i, it); text != "" {
			advice = append(advice, text)
			continue
		}
		for k := range g.Pools {
			bundles := w.servedByCut(it, i, k, given, count)
			if bundles == 0 {
				continue
			}
			instances := int64(math.Ceil(float64(bundles) * it.Request.Bundle[raydemand.GPU].Float()))
			for _, cards := range g.Pools[k].Cards {
				r := recut{pool: &g.Pools[k], cards: cards, slice: g.Slice, need: it.Slice}
				// Name the same cards once, even if several groups ask for instances of them.
				if text := r.text(instances); text != "" && !seen[r.now(cards.Count)+r.pool.Name] {
					seen[r.now(cards.Count)+r.pool.Name] = true
					advice = append(advice, text)
				}
			}
		}
	}
	return phrase.List(advice)
}

// rounded reports whether a group falls short only because a fraction of a card was written in decimals. Then no other
// cut is needed.
func (w *Writer) rounded(it *vector.Item) bool {
	const written = 0.001
	need := it.Slice
	need.Compute = max(need.Compute-written, 0)
	for i := range w.Groups {
		if s := w.Groups[i].Slice; s != nil && need.Allows(s) && !it.Slice.Allows(s) {
			return true
		}
	}
	return false
}

// suitsButSlice reports whether a new node of a group with these amounts could serve one bundle if each of its GPUs
// were large enough.
func (w *Writer) suitsButSlice(it *vector.Item, g *fleet.Group, total vector.Vector) bool {
	return vector.FirstMatch(it.Request.Selectors, g.Labels) != vector.NoMatch && total.Times(it.Need, 1) == 1
}

// servedByCut returns how many of count bundles a group's pods on its k-th pool could serve if the cards there had the
// right layout. It returns 0 if the pods lack something else, if the bound on all workers is reached, or if the pool is
// short of something else, such as CPU.
func (w *Writer) servedByCut(it *vector.Item, i, k int, given []int64, count int64) int64 {
	g := &w.Groups[i]
	if !w.suitsButSlice(it, g, g.Shape.Total) || w.Spare(given) < g.Hosts {
		return 0
	}
	return min(count, vector.TimesAtMost(w.RoomBesideCards(i, k, given), g.Shape.Total.Times(it.Need, count)))
}

// overDeclared reports that a group declares more GPUs than it has devices, although one whole device would be enough.
func (w *Writer) overDeclared(i int, it *vector.Item) string {
	g := &w.Groups[i]
	if g.Slice == nil || len(g.Pools) == 0 || g.Slice.Kind != gpuinfo.Whole && g.Slice.Kind != gpuinfo.MIG ||
		it.Slice.Allows(g.Slice) {
		return ""
	}
	devices, gpus := g.Pools[0].Units, g.Resources[raydemand.GPU]
	if devices <= 0 || gpus <= raydemand.Whole(devices) {
		return ""
	}
	declared := slices.Clone(g.Shape.Total)
	declared[w.Index[raydemand.GPU]] = raydemand.Whole(devices)
	if !w.suitsButSlice(it, g, declared) {
		return ""
	}
	times, device := gpus.Float()/float64(devices), *g.Slice
	if g.Slice.MemoryMiB != nil {
		memory := int64(float64(*g.Slice.MemoryMiB) * times)
		device.MemoryMiB = &memory
	}
	if g.Slice.ComputeFraction != nil {
		compute := *g.Slice.ComputeFraction * times
		device.ComputeFraction = &compute
	}
	if !it.Slice.Allows(&device) {
		return ""
	}
	return fmt.Sprintf(
		"group %s declares %s GPUs for %d × %s: "+
			"set num-gpus to %d, so that each GPU is a whole device, which is enough",
		g.Name,
		gpus,
		devices,
		g.Pools[0].Resource,
		devices,
	)
}

// onlyACutHelps reports whether no group has large enough slices, or only the pools limit the groups that do.
func (w *Writer) onlyACutHelps(it *vector.Item, given []int64) bool {
	short := false
	for i := range w.Groups {
		s := w.Groups[i].Shape
		if reason, missed := w.sliceMiss(it, s); missed {
			short = short || reason.Code == model.CodeSliceTooSmall
			continue
		}
		if !it.Suits(s) {
			continue
		}
		if reason, ok := w.Limit(i, given); !ok || reason.Code != model.CodePoolCeiling {
			return false
		}
		short = true
	}
	return short
}

// smallestCut returns the smallest profile of the product that meets the requirement.
func smallestCut(n vector.SliceRequirement, product gpuinfo.Product) (gpuinfo.Profile, bool) {
	for i := len(product.Profiles) - 1; i >= 0; i-- {
		if profile := product.Profiles[i]; profile.Plain() && profile.Max > 0 && profile.Memory > 0 &&
			n.Allows(instance(product, profile)) {
			return profile, true
		}
	}
	return gpuinfo.Profile{}, false
}

// instance returns the slice that one instance of a profile is.
func instance(product gpuinfo.Product, profile gpuinfo.Profile) *model.Slice {
	made := &model.Slice{Kind: gpuinfo.MIG, Isolation: gpuinfo.Hardware, Profile: profile.Name}
	compute := float64(profile.Slices) / float64(product.Slices)
	made.ComputeFraction = &compute
	if memory := int64(profile.Memory); memory > 0 {
		made.MemoryMiB = &memory
	}
	return made
}

// recut is a change of the layout of a pool's cards.
type recut struct {
	pool  *model.GroupPool
	cards sharing.CutCards
	// slice is what one GPU of the group is, need what demand requires of it.
	slice *model.Slice
	need  vector.SliceRequirement
}

// text recommends a new layout that adds instances which meet the requirement. It returns an empty string if no layout
// holds more of them than the current one.
func (r recut) text(instances int64) string {
	product, known := gpuinfo.ProductNamed(r.cards.Product)
	if !known {
		return ""
	}
	to, found := smallestCut(r.need, product)
	if !found {
		return ""
	}
	gain := int64(to.Max) - r.enoughNow(product)
	if gain <= 0 {
		return ""
	}
	if r.pool.ProfileFixed && len(r.cards.Cut) > 0 {
		return fmt.Sprintf(
			"%s cannot change its MIG profile: add a pool with profile %s; %s of %s would serve %d",
			r.where(),
			to.Name,
			phrase.Cards(vector.RoundUp(instances, int64(to.Max))/int64(to.Max)),
			product.Name,
			instances,
		)
	}
	idle := r.idle()
	if idle == 0 {
		return r.onceIdle(to, min(gain, instances))
	}
	cards := min(vector.RoundUp(instances, gain)/gain, idle)
	each := phrase.OneOrMany(cards, "", " each")
	return fmt.Sprintf(
		"cut %s of %s (%s) into %d × %s%s to serve %d, in a group that asks for them; %s",
		phrase.Cards(cards),
		r.where(),
		r.now(cards),
		to.Max,
		to.Name,
		each,
		min(instances, cards*gain),
		r.inUse(),
	)
}

// idle counts the cards that no pod uses.
func (r recut) idle() int64 {
	if r.cards.Busy == nil {
		return r.cards.Count
	}
	return max(r.cards.Count-*r.cards.Busy, 0)
}

// onceIdle recommends the new layout for when a card is no longer in use.
func (r recut) onceIdle(to gpuinfo.Profile, serves int64) string {
	all := phrase.OneOrMany(r.cards.Count, "the card", fmt.Sprintf("all %d cards", r.cards.Count))
	return fmt.Sprintf("%s of %s (%s) %s in use: once one is idle, cut it into %d × %s to serve %d", all, r.where(),
		r.now(r.cards.Count), phrase.OneOrMany(r.cards.Count, "is", "are"), to.Max, to.Name, serves)
}

// enoughNow returns how many instances of one card meet the requirement with the current layout.
func (r recut) enoughNow(product gpuinfo.Product) int64 {
	if len(r.cards.Cut) == 0 {
		if r.need.Allows(r.slice) {
			return 1
		}
		return 0
	}
	var n int64
	for _, cut := range r.cards.Cut {
		if profile, has := product.Profile(cut.Profile); has && r.need.Allows(instance(product, profile)) {
			n += cut.Count
		}
	}
	return vector.RoundUp(n, r.cards.Count) / r.cards.Count
}

func (r recut) where() string {
	if r.pool.Name == "" {
		return "the nodes without a pool"
	}
	return "pool " + r.pool.Name
}

// now describes the current layout of a number of cards. The layout of several cards together does not show what each
// one is, unless all are alike.
func (r recut) now(cards int64) string {
	if len(r.cards.Cut) == 0 {
		return phrase.OneOrMany(cards, "now whole", "each now whole")
	}
	each := r.cards.Count == 1 ||
		len(r.cards.Cut) == 1 && r.cards.Cut[0].Count == r.cards.Count*r.mostOf(r.cards.Cut[0].Profile)
	parts := make([]string, len(r.cards.Cut))
	for i, cut := range r.cards.Cut {
		n := cut.Count
		if each {
			n /= r.cards.Count
		}
		parts[i] = fmt.Sprintf("%d × %s", n, cut.Profile)
	}
	list := strings.Join(parts, " + ")
	if each {
		return phrase.OneOrMany(cards, "now ", "each now ") + list
	}
	return fmt.Sprintf("the %d together are now %s", r.cards.Count, list)
}

func (r recut) mostOf(profile string) int64 {
	product, _ := gpuinfo.ProductNamed(r.cards.Product)
	p, _ := product.Profile(profile)
	return int64(p.Max)
}

func (r recut) inUse() string {
	switch {
	case r.cards.Busy == nil && r.cards.Count == 1:
		return "it is unknown whether the card is in use"
	case r.cards.Busy == nil:
		return fmt.Sprintf("it is unknown which of the %d cards there are in use", r.cards.Count)
	}
	areUsed := phrase.OneOrMany(*r.cards.Busy, "is", "are")
	return fmt.Sprintf("%d of the %d cards there %s in use", *r.cards.Busy, r.cards.Count, areUsed)
}
