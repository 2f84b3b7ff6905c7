package snapshotfile

import (
	"errors"
	"math"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// sliceRequirement reads what a request requires of each GPU; nil if it requires nothing.
func (in input) sliceRequirement() *raydemand.SliceRequirement {
	if in.Absent() || in.Failed() {
		return nil
	}
	required, err := raydemand.ParseSliceRequirement(in.Raw())
	var refused *raydemand.SliceError
	if errors.As(err, &refused) {
		in.FailBelow(refused.Field, refused.Value, refused.Want)
	}
	return required
}

func (in input) isolation() nodepool.RequiredIsolation {
	text := in.Text()
	if text == "" {
		return ""
	}
	required, err := nodepool.ParseRequiredIsolation(text)
	if err != nil {
		in.Fail(raydemand.SliceIsolationWant)
	}
	return required
}

// mostSliceMiB is raydemand.MaxSliceMemory in MiB.
const mostSliceMiB = raydemand.MaxSliceMemory >> 20

// slice reads what one GPU of a group is, or nil if that is unknown.
func (in input) slice() *model.Slice {
	if in.Absent() {
		return nil
	}
	field, done := in.fields()
	defer done()
	s := &model.Slice{
		Kind: gpuinfo.Kind(field("kind").Text()), MemoryMiB: field("memoryMiB").OptionalCount(0, mostSliceMiB),
		ComputeFraction: field("computeFraction").Number(1), Isolation: gpuinfo.Isolation(field("isolation").Text()),
		Profile: field("profile").Text(),
		Product: field("product").Text(), Blocks: field("blocks").OptionalCount(0, model.MaxCount),
	}
	switch s.Kind {
	case "":
		s.Kind = gpuinfo.UnknownKind
	case gpuinfo.Whole, gpuinfo.WholeUnproven, gpuinfo.MIG, gpuinfo.MIGUnproven, gpuinfo.TimeSliced, gpuinfo.MPS,
		gpuinfo.GPUMemory, gpuinfo.VGPU, gpuinfo.UnknownKind:
	default:
		field("kind").Fail("whole, whole (unproven), mig, mig (unproven), time-sliced, mps, gpu-mem, vgpu or unknown")
	}
	switch s.Isolation {
	case "":
		s.Isolation = gpuinfo.UnknownIsolation
	case gpuinfo.Hardware, gpuinfo.Limit, gpuinfo.NoIsolation, gpuinfo.UnknownIsolation:
	default:
		field("isolation").Fail("hardware, limit, none or unknown")
	}
	if s.Profile != "" {
		profile, err := gpuinfo.ParseProfile(s.Profile)
		if err != nil {
			field("profile").Fail("a MIG profile such as 1g.10gb")
		}
		if product, known := gpuinfo.ProductOf(s.Product); known && !product.Has(profile) {
			field("profile").Fail(wantProfile(product))
		}
	}
	return s
}

func (in input) groupPools() []landing.GroupPool {
	seen := map[string]int{}
	var pools []landing.GroupPool
	for i, each := range in.objects() {
		field, done := each.fields()
		pool := landing.GroupPool{
			Name:    field("name").Text(),
			MaxPods: field("maxPods").OptionalCount(0, model.MaxCount), Resource: field("resource").Text(),
			Units: field("units").Count(0, math.MaxInt32, 0), ProfileFixed: field("profileFixed").Flag(),
			Shares: field("shares").poolShares(), Cards: field("cards").poolCards(),
		}
		field("name").unique(seen, pool.Name, i)
		done()
		pools = append(pools, pool)
	}
	return pools
}

func (in input) poolShares() []landing.PoolShare {
	var shares []landing.PoolShare
	seen := map[string]int{}
	for i, each := range in.objects() {
		field, done := each.fields()
		share := landing.PoolShare{
			Resource: field("resource").Text(),
			Units:    field("units").Count(1, math.MaxInt32, 1),
			Capacity: field("capacity").Count(0, math.MaxInt64/4, 0),
		}
		field("resource").unique(seen, share.Resource, i)
		done()
		shares = append(shares, share)
	}
	return shares
}

// poolCards reads the cards of a pool. It refuses a product without the profile.
func (in input) poolCards() []sharing.CutCards {
	var all []sharing.CutCards
	for _, each := range in.objects() {
		field, done := each.fields()
		cards := sharing.CutCards{
			Product: field("product").Text(),
			Count:   field("count").Count(1, model.MaxCount, 1),
			Busy:    field("busy").OptionalCount(0, model.MaxCount),
		}
		product, known := gpuinfo.ProductNamed(cards.Product)
		if !known {
			field("product").Fail("a product that can be cut with MIG, such as A100 40GB")
		}
		for _, one := range field("cut").objects() {
			cut, cutDone := one.fields()
			of := sharing.Cut{Profile: cut("profile").Text(), Count: cut("count").Count(1, model.MaxCount, 1)}
			if _, has := product.Profile(of.Profile); known && !has {
				cut("profile").Fail(wantProfile(product))
			}
			cutDone()
			cards.Cut = append(cards.Cut, of)
		}
		done()
		all = append(all, cards)
	}
	return all
}

// wantProfile lists the profiles of a product without attributes.
func wantProfile(product gpuinfo.Product) string {
	var names []string
	for _, p := range product.Profiles {
		if p.Plain() {
			names = append(names, p.Name)
		}
	}
	return "a profile that " + product.Name + " has: " + strings.Join(names, ", ")
}

// nodeFit reads what is proven about the nodes for a group; nil if nothing is.
func (in input) nodeFit() *model.NodeFit {
	if in.Absent() {
		return nil
	}
	field, done := in.fields()
	defer done()
	fit := &model.NodeFit{Verdict: model.FitVerdict(field("verdict").Text()), Why: field("why").Text()}
	switch fit.Verdict {
	case model.FitTrying, model.FitNowhere, model.FitLimited, model.FitWaiting:
	default:
		field("verdict").Fail("trying, waiting, nowhere or limited")
	}
	return fit
}
