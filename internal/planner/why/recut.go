package why

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// recut recommends a new layout of cards, of the smallest profile that meets a requirement, that adds instances of it;
// slice is what one GPU is now. It returns an empty string if no layout holds more of them than the current one.
func recut(
	need model.SliceNeed, slice *model.Slice, pool *landing.GroupPool, cards sharing.CutCards, instances int64,
) string {
	product, _ := gpuinfo.ProductNamed(cards.Product)
	enough := func(p gpuinfo.Profile) bool { return need.Allows(instance(product, p)) }
	to, now := gpuinfo.Profile{}, int64(0) // how many instances of all cards meet the requirement now
	for _, profile := range product.Profiles {
		if profile.Plain() && profile.Max > 0 && profile.Memory > 0 && enough(profile) {
			to = profile
		}
	}
	for _, cut := range cards.Cut {
		if profile, has := product.Profile(cut.Profile); has && enough(profile) {
			now += cut.Count
		}
	}
	all := cards.Count
	if len(cards.Cut) == 0 && need.Allows(slice) {
		now = all
	}
	most := int64(to.Max)
	gain := most - ceil(now, all)
	if gain <= 0 {
		return ""
	}
	where, idle := "pool "+pool.Name, all
	if pool.Name == "" {
		where = "the nodes without a pool"
	}
	use := model.OneOrMany(all, "it is unknown whether the card is in use",
		fmt.Sprintf("it is unknown which of the %d cards there are in use", all))
	if cards.Busy != nil {
		idle = max(all-*cards.Busy, 0)
		use = fmt.Sprintf("%d of %s there in use", *cards.Busy, model.Plural(all, "card"))
	}
	switch {
	case pool.ProfileFixed && len(cards.Cut) > 0:
		return fmt.Sprintf("%s cannot change its MIG profile: add a pool with profile %s; %s of %s would serve %d",
			where, to.Name, model.Plural(ceil(instances, most), "card"), product.Name, instances)
	case idle == 0:
		return fmt.Sprintf("%s of %s (%s) in use: once one is idle, cut it into %d × %s to serve %d",
			model.Plural(all, "card"), where, layout(cards, all), most, to.Name, min(gain, instances))
	}
	cut := min(ceil(instances, gain), idle)
	return fmt.Sprintf("cut %s of %s (%s) into %d × %s%s to serve %d, in a group that asks for them; %s",
		model.Plural(cut, "card"), where, layout(cards, cut), most, to.Name, model.OneOrMany(cut, "", " each"),
		min(instances, cut*gain), use)
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

// layout describes how some of the cards are cut now. The layout of several cards together does not show what each one
// is, unless all are alike.
func layout(cards sharing.CutCards, some int64) string {
	if len(cards.Cut) == 0 {
		return model.OneOrMany(some, "now whole", "each now whole")
	}
	product, _ := gpuinfo.ProductNamed(cards.Product)
	first, _ := product.Profile(cards.Cut[0].Profile)
	each := int64(1)
	if cards.Count == 1 || len(cards.Cut) == 1 && cards.Cut[0].Count == cards.Count*int64(first.Max) {
		each = cards.Count
	}
	parts := make([]string, len(cards.Cut))
	for i, cut := range cards.Cut {
		parts[i] = fmt.Sprintf("%d × %s", cut.Count/each, cut.Profile)
	}
	list := strings.Join(parts, " + ")
	if each < cards.Count {
		return fmt.Sprintf("the %d together are now %s", cards.Count, list)
	}
	return model.OneOrMany(some, "now ", "each now ") + list
}

// ceil divides and rounds up.
func ceil(n, by int64) int64 { return (n + by - 1) / by }
