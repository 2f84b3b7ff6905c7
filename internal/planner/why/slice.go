package why

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// sliceMiss explains how the GPUs of a shape fall short of an item's requirement.
func (d *decision) sliceMiss(it *place.Item, shape *place.Shape) model.Reason {
	n := it.Slice
	if at, known := d.Index[raydemand.GPU]; !known || shape.Total[at] == 0 || n.Allows(d.SliceOf(shape)) {
		return model.Reason{}
	}
	s, part := cmp.Or(d.SliceOf(shape), &model.Slice{}), ""
	if n.Gpu != raydemand.One {
		part = n.Gpu.String() + " of "
	}
	switch shortfall := n.Shortfall(s); {
	case shortfall == place.TooOpen && s.Isolation == gpuinfo.Limit:
		return softLimit.with(s.Name(), n.Isolation)
	case shortfall == place.TooOpen && s.Isolation == gpuinfo.NoIsolation:
		return noIsolation.with(s.Name(), n.Isolation)
	case shortfall == place.TooOpen:
		return openIsolation.with(s.Name(), n.Isolation)
	case shortfall == place.TooLittleMemory && s.MemoryMiB == nil:
		return memoryUnknown.with(s.Name(), model.Memory(n.Memory))
	case shortfall == place.TooLittleMemory:
		return littleMemory.with(part, s.Name(), model.Memory(n.Share(*s.MemoryMiB<<20)), model.Memory(n.Memory))
	case s.ComputeFraction == nil:
		return cardUnknown.with(s.Name(), model.Fraction(n.Compute))
	}
	has, needs := model.Fractions(*s.ComputeFraction*n.Gpu.Float(), n.Compute)
	return littleCompute.with(part, s.Name(), has, needs)
}

// partOfSlice returns what a fraction of a GPU amounts to in a group: " (0.5 of a slice 1g.10gb, 4.75 GiB)". It returns
// an empty string for whole GPUs, or if the memory is unknown.
func partOfSlice(g *place.Group, it *place.Item) string {
	gpus := it.Request.Bundle[raydemand.GPU]
	if g.Slice == nil || g.Slice.MemoryMiB == nil || gpus <= 0 || gpus >= raydemand.One {
		return ""
	}
	n := place.SliceRequirement{Gpu: gpus}
	return fmt.Sprintf(" (%s of a %s, %s)", gpus, g.Slice.Name(), model.Memory(n.Share(*g.Slice.MemoryMiB<<20)))
}

// advised adds to a reason what the operator can do to serve an item if no group has large enough slices, or the pools
// of the groups that have them are full: declare fewer GPUs for the same devices, or cut existing cards differently. It
// names the current and the new layout, the pool and the number of cards. It adds nothing if neither helps, because
// something else is short too, or if the cards are unknown.
func (d *decision) advised(reason model.Reason, it *place.Item, count int64) model.Reason {
	if it.Request.Slice == nil || it.Slice.Memory == 0 && it.Slice.Compute == 0 || !d.onlyACutHelps(it) {
		return reason
	}
	var advice []string
	seen := map[string]bool{} // the same cards are named once, even if several groups ask for instances of them
	for i := range d.Groups {
		g := &d.Groups[i]
		if text := d.overDeclared(i, it); text != "" {
			advice = append(advice, text)
			continue
		}
		if !suitsButSlice(it, g, g.Shape.Total) || d.Spare(d.given) < g.Hosts {
			continue
		}
		for k := range g.Pools {
			pool := &g.Pools[k]
			room := int64(place.MaxCount) // for more pods, by everything but devices, such as CPU
			for _, share := range pool.Shares {
				if share.Resource != pool.Resource {
					room = min(room, share.Capacity/max(share.Units, 1)-g.Current-d.given[i])
				}
			}
			bundles := min(count, place.TimesAtMost(max(room, 0), g.Shape.Total.Times(it.Need, count)))
			instances := int64(math.Ceil(float64(bundles) * it.Request.Bundle[raydemand.GPU].Float()))
			for _, cards := range pool.Cards {
				r := recut{pool, cards, g.Slice, it.Slice}
				text, key := r.text(instances), r.now(cards.Count)+pool.Name
				if bundles > 0 && text != "" && !seen[key] {
					seen[key] = true
					advice = append(advice, text)
				}
			}
		}
	}
	reason.Message = model.Join(reason.Message, model.List(advice))
	return reason
}

// onlyACutHelps reports whether no group has large enough slices, or only the pools limit the groups that do. If a
// group falls short only because a fraction of a card was written in decimals, no other cut is needed.
func (d *decision) onlyACutHelps(it *place.Item) (short bool) {
	const written = 0.001
	rounded := it.Slice
	rounded.Compute = max(rounded.Compute-written, 0)
	for i := range d.Groups {
		s := d.Groups[i].Shape
		if slice := d.Groups[i].Slice; slice != nil && rounded.Allows(slice) && !it.Slice.Allows(slice) {
			return false
		}
		if reason := d.sliceMiss(it, s); said(reason) {
			short = short || reason.Code == model.CodeSliceTooSmall
		} else if it.Suits(s) {
			if d.limit(i).Code != model.CodePoolCeiling {
				return false
			}
			short = true
		}
	}
	return short
}

// suitsButSlice reports whether a new node of a group with these amounts could serve one bundle if each of its GPUs
// were large enough.
func suitsButSlice(it *place.Item, g *place.Group, total place.Vector) bool {
	return place.FirstMatch(it.Request.Selectors, g.Labels) != place.NoMatch && total.Times(it.Need, 1) == 1
}

// overDeclared reports that a group declares more GPUs than it has devices, although one whole device would be enough.
func (d *decision) overDeclared(i int, it *place.Item) string {
	g := &d.Groups[i]
	if g.Slice == nil || len(g.Pools) == 0 || g.Slice.Kind != gpuinfo.Whole && g.Slice.Kind != gpuinfo.MIG ||
		it.Slice.Allows(g.Slice) {
		return ""
	}
	devices, gpus := g.Pools[0].Units, g.Resources[raydemand.GPU]
	if devices <= 0 || gpus <= raydemand.Whole(devices) {
		return ""
	}
	declared := slices.Clone(g.Shape.Total)
	declared[d.Index[raydemand.GPU]] = raydemand.Whole(devices)
	times, device := gpus.Float()/float64(devices), *g.Slice
	if g.Slice.MemoryMiB != nil {
		device.MemoryMiB = new(int64(float64(*g.Slice.MemoryMiB) * times))
	}
	if g.Slice.ComputeFraction != nil {
		device.ComputeFraction = new(*g.Slice.ComputeFraction * times)
	}
	if !suitsButSlice(it, g, declared) || !it.Slice.Allows(&device) {
		return ""
	}
	return fmt.Sprintf("group %s declares %s GPUs for %d × %s: set num-gpus to %d, so that each GPU is a whole "+
		"device, which is enough", g.Name, gpus, devices, g.Pools[0].Resource, devices)
}

// recut is a change of the layout of a pool's cards.
type recut struct {
	pool  *landing.GroupPool
	cards sharing.CutCards
	// slice is what one GPU of the group is, need what demand requires of it.
	slice *model.Slice
	need  place.SliceRequirement
}

// text recommends a new layout, of the smallest profile that meets the requirement, that adds instances of it. It
// returns an empty string if no layout holds more of them than the current one.
func (r recut) text(instances int64) string {
	product, _ := gpuinfo.ProductNamed(r.cards.Product)
	to := gpuinfo.Profile{}
	for _, profile := range product.Profiles {
		if profile.Plain() && profile.Max > 0 && profile.Memory > 0 && r.need.Allows(instance(product, profile)) {
			to = profile
		}
	}
	most := int64(to.Max)
	gain := most - r.enoughNow(product)
	if gain <= 0 {
		return ""
	}
	where := "pool " + r.pool.Name
	if r.pool.Name == "" {
		where = "the nodes without a pool"
	}
	if r.pool.ProfileFixed && len(r.cards.Cut) > 0 {
		return fmt.Sprintf("%s cannot change its MIG profile: add a pool with profile %s; %s of %s would serve %d",
			where, to.Name, model.Plural(place.RoundUp(instances, most)/most, "card"), product.Name, instances)
	}
	all, busy := r.cards.Count, r.cards.Busy
	idle := all
	if busy != nil {
		idle = max(all-*busy, 0)
	}
	if idle == 0 {
		return fmt.Sprintf("%s of %s (%s) %s in use: once one is idle, cut it into %d × %s to serve %d",
			model.OneOrMany(all, "the card", fmt.Sprintf("all %d cards", all)), where, r.now(all),
			model.OneOrMany(all, "is", "are"), most, to.Name, min(gain, instances))
	}
	use := fmt.Sprintf("it is unknown which of the %d cards there are in use", all)
	switch {
	case busy != nil:
		use = fmt.Sprintf("%d of the %d cards there %s in use", *busy, all, model.OneOrMany(*busy, "is", "are"))
	case all == 1:
		use = "it is unknown whether the card is in use"
	}
	cards := min(place.RoundUp(instances, gain)/gain, idle)
	return fmt.Sprintf("cut %s of %s (%s) into %d × %s%s to serve %d, in a group that asks for them; %s",
		model.Plural(cards, "card"), where, r.now(cards), most, to.Name, model.OneOrMany(cards, "", " each"),
		min(instances, cards*gain), use)
}

// instance returns the slice that one instance of a profile is.
func instance(product gpuinfo.Product, profile gpuinfo.Profile) *model.Slice {
	made := &model.Slice{Kind: gpuinfo.MIG, Isolation: gpuinfo.Hardware, Profile: profile.Name,
		ComputeFraction: new(float64(profile.Slices) / float64(product.Slices))}
	if memory := int64(profile.Memory); memory > 0 {
		made.MemoryMiB = &memory
	}
	return made
}

// enoughNow returns how many instances of one card meet the requirement with the current layout.
func (r recut) enoughNow(product gpuinfo.Product) (n int64) {
	if len(r.cards.Cut) == 0 {
		if r.need.Allows(r.slice) {
			n = 1
		}
		return n
	}
	for _, cut := range r.cards.Cut {
		if profile, has := product.Profile(cut.Profile); has && r.need.Allows(instance(product, profile)) {
			n += cut.Count
		}
	}
	return place.RoundUp(n, r.cards.Count) / r.cards.Count
}

// now describes the current layout of a number of cards. The layout of several cards together does not show what each
// one is, unless all are alike.
func (r recut) now(cards int64) string {
	if len(r.cards.Cut) == 0 {
		return model.OneOrMany(cards, "now whole", "each now whole")
	}
	product, _ := gpuinfo.ProductNamed(r.cards.Product)
	first, _ := product.Profile(r.cards.Cut[0].Profile)
	each := r.cards.Count == 1 ||
		len(r.cards.Cut) == 1 && r.cards.Cut[0].Count == r.cards.Count*int64(first.Max)
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
		return model.OneOrMany(cards, "now ", "each now ") + list
	}
	return fmt.Sprintf("the %d together are now %s", r.cards.Count, list)
}
