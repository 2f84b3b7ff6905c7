package planner

import (
	"fmt"
	"math"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// advice says which cut of the cards would serve what waits of an item, where no group has slices that do, or the pools of those that have
// are full: from what to what, on which pool, on how many cards. It is empty where no other cut helps, or it is not known what the cards are.
func (p *planning) advice(it *item, given []int64, count int64) string {
	if it.request.Slice == nil || it.slice.memory == 0 && it.slice.compute == 0 || !p.onlyACutHelps(it, given) {
		return ""
	}
	var told []string
	seen := map[string]bool{}
	for i := range p.groups {
		g := &p.groups[i]
		if g.Slice == nil || len(g.Pools) == 0 {
			continue
		}
		product, known := gpuinfo.ProductOf(g.Slice.Product)
		if !known || !isolated(g.Slice) {
			continue
		}
		to, found := it.slice.cut(product, g.Slice)
		if !found {
			continue
		}
		for _, pool := range g.Pools {
			if text := pool.recut(g.Slice, product, to, it, count); text != "" && !seen[text] {
				seen[text] = true
				told = append(told, text)
			}
		}
	}
	return listed(told)
}

// isolated: cards that are whole or cut with MIG can be cut otherwise.
func isolated(s *Slice) bool {
	return s.Kind == gpuinfo.Whole || s.Kind == gpuinfo.MIG && s.Profile != ""
}

// onlyACutHelps reports whether no group could serve the item by its slices, or all that could are kept from it by their pools.
func (p *planning) onlyACutHelps(it *item, given []int64) bool {
	short := false
	for i := range p.groups {
		s := p.groups[i].shape
		if reason, missed := p.sliceMiss(it, s); missed {
			short = short || reason.Code == CodeSliceTooSmall
			continue
		}
		if !it.suits(s) {
			continue
		}
		if reason, ok := p.limit(i, given); !ok || reason.Code != CodePoolCeiling {
			return false
		}
		short = true
	}
	return short
}

// cut is the smallest profile of the product that gives what is needed, and that the cards are not cut into already.
func (n sliceNeed) cut(product gpuinfo.Product, now *Slice) (gpuinfo.Profile, bool) {
	for i := len(product.Profiles) - 1; i >= 0; i-- {
		profile := product.Profiles[i]
		if !profile.Plain() || profile.Memory == 0 {
			continue
		}
		memory, compute := int64(profile.Memory), float64(profile.Slices)/float64(product.Slices)
		made := &Slice{Kind: gpuinfo.MIG, MemoryMiB: &memory, ComputeFraction: &compute, Isolation: gpuinfo.Hardware, Profile: profile.Name}
		if n.allows(made) {
			return profile, profile.Name != now.Profile
		}
	}
	return gpuinfo.Profile{}, false
}

// recut tells what to do with a pool whose cards are cut as now, so that they hold so many of what waits.
func (pool *GroupPool) recut(now *Slice, product gpuinfo.Product, to gpuinfo.Profile, it *item, count int64) string {
	if to.Max == 0 {
		return ""
	}
	instances := int64(math.Ceil(float64(count) * it.request.Bundle[raydemand.GPU].Float()))
	cards := roundUp(instances, int64(to.Max)) / int64(to.Max)
	perCard := int64(1)
	from := "whole"
	if now.Kind == gpuinfo.MIG {
		profile, has := product.Profile(now.Profile)
		if !has {
			return ""
		}
		perCard, from = int64(profile.Max), fmt.Sprintf("%d × %s", profile.Max, now.Profile)
	}
	if now.Kind == gpuinfo.Whole && it.slice.allows(now) && to.Max <= 1 {
		return "" // a card for a card
	}
	if pool.ProfileFixed && now.Kind == gpuinfo.MIG {
		return fmt.Sprintf("the profile of pool %s is fixed: add a pool with profile %s, %s of %s for %d", pool.Name, to.Name, cardCount(cards), product.Name, instances)
	}
	if pool.MaxPods != nil {
		cards = min(cards, timesUpTo(*pool.MaxPods, max(pool.Units, 1))/perCard)
	}
	if cards == 0 {
		return ""
	}
	return fmt.Sprintf("cutting %s of pool %s, now %s, into %d × %s would serve %d of it, for a group that asks for them",
		cardCount(cards), strings.TrimSpace(pool.Name), from, to.Max, to.Name, min(instances, cards*int64(to.Max)))
}

func cardCount(n int64) string {
	if n == 1 {
		return "1 card"
	}
	return fmt.Sprintf("%d cards", n)
}
