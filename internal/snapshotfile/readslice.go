package snapshotfile

import (
	"errors"
	"math"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// wish reads what a request asks of each GPU; nil where it asks for nothing.
func (in input) wish() *raydemand.SliceRequirement {
	if in.absent() || in.file.err != nil {
		return nil
	}
	wish, err := raydemand.ParseSliceRequirement(in.raw)
	var refused *raydemand.SliceError
	if errors.As(err, &refused) {
		in.file.err = &InputError{
			in.file.name,
			strings.TrimSuffix(in.path+"."+refused.Field, "."),
			refused.Value,
			refused.Want,
		}
	}
	return wish
}

func (in input) isolation() nodepool.RequiredIsolation {
	text := in.text()
	if text == "" {
		return ""
	}
	required, err := nodepool.ParseRequiredIsolation(text)
	if err != nil {
		in.fail(raydemand.SliceIsolationWant)
	}
	return required
}

// mostSliceMiB is raydemand.MaxSliceMemory in MiB.
const mostSliceMiB = raydemand.MaxSliceMemory >> 20

// slice reads what one GPU of a group is; nil where that is not known.
func (in input) slice() *model.Slice {
	if in.absent() {
		return nil
	}
	field, done := in.fields()
	defer done()
	s := &model.Slice{
		Kind: gpuinfo.Kind(field("kind").text()), MemoryMiB: field("memoryMiB").optionalAmount(mostSliceMiB),
		ComputeFraction: field("computeFraction").number(1), Isolation: gpuinfo.Isolation(field("isolation").text()),
		Profile: field(
			"profile",
		).text(),
		Product: field("product").text(), Blocks: field("blocks").optionalAmount(model.MaxCount),
	}
	switch s.Kind {
	case "":
		s.Kind = gpuinfo.UnknownKind
	case gpuinfo.Whole, gpuinfo.MIG, gpuinfo.TimeSliced, gpuinfo.MPS, gpuinfo.GPUMemory, gpuinfo.VGPU, gpuinfo.UnknownKind:
	default:
		field("kind").fail("whole, mig, time-sliced, mps, gpu-mem, vgpu or unknown")
	}
	switch s.Isolation {
	case "":
		s.Isolation = gpuinfo.UnknownIsolation
	case gpuinfo.Hardware, gpuinfo.Limit, gpuinfo.NoIsolation, gpuinfo.UnknownIsolation:
	default:
		field("isolation").fail("hardware, limit, none or unknown")
	}
	if s.Profile != "" {
		profile, err := gpuinfo.ParseProfile(s.Profile)
		if err != nil {
			field("profile").fail("a MIG profile such as 1g.10gb")
		}
		if product, known := gpuinfo.ProductOf(s.Product); known && !product.Has(profile) {
			field("profile").fail("a profile that " + product.Name + " has: " + strings.Join(plainProfiles(product), ", "))
		}
	}
	return s
}

func (in input) groupPools() []model.GroupPool {
	seen := map[string]int{}
	var pools []model.GroupPool
	for i, each := range in.objects() {
		field, done := each.fields()
		pool := model.GroupPool{
			Name: field(
				"name",
			).text(),
			MaxPods: field("maxPods").optionalAmount(model.MaxCount), Resource: field("resource").text(),
			Units: field("units").count(0, math.MaxInt32, 0), ProfileFixed: field("profileFixed").boolean(),
			Shares: field("shares").poolShares(), Cards: field("cards").poolCards(),
		}
		field("name").unique(seen, pool.Name, i, in.path)
		done()
		pools = append(pools, pool)
	}
	return pools
}

func (in input) poolShares() []model.PoolShare {
	var shares []model.PoolShare
	seen := map[string]int{}
	for i, each := range in.objects() {
		field, done := each.fields()
		share := model.PoolShare{
			Resource: field("resource").text(),
			Units:    field("units").count(1, math.MaxInt32, 1),
			Capacity: field("capacity").count(0, math.MaxInt64/4, 0),
		}
		field("resource").unique(seen, share.Resource, i, in.path)
		done()
		shares = append(shares, share)
	}
	return shares
}

// poolCards reads cards of a pool. A product that has no such profile, or none at all, is refused.
func (in input) poolCards() []nodegpu.CutCards {
	var all []nodegpu.CutCards
	for _, each := range in.objects() {
		field, done := each.fields()
		cards := nodegpu.CutCards{
			Product: field("product").text(),
			Count:   field("count").count(1, model.MaxCount, 1),
			Busy:    field("busy").optionalAmount(model.MaxCount),
		}
		product, known := gpuinfo.ProductNamed(cards.Product)
		if !known {
			field("product").fail("a product that can be cut with MIG, such as A100 40GB")
		}
		for _, one := range field("cut").objects() {
			cut, cutDone := one.fields()
			of := nodegpu.Cut{Profile: cut("profile").text(), Count: cut("count").count(1, model.MaxCount, 1)}
			if _, has := product.Profile(of.Profile); known && !has {
				cut("profile").fail("a profile that " + product.Name + " has: " + strings.Join(plainProfiles(product), ", "))
			}
			cutDone()
			cards.Cut = append(cards.Cut, of)
		}
		done()
		all = append(all, cards)
	}
	return all
}

// plainProfiles are the names of a product's profiles without attributes.
func plainProfiles(product gpuinfo.Product) []string {
	var names []string
	for _, p := range product.Profiles {
		if p.Plain() {
			names = append(names, p.Name)
		}
	}
	return names
}

// optionalAmount reads a whole number from 0 to most; nil where there is none.
func (in input) optionalAmount(most int64) *int64 {
	if in.absent() {
		return nil
	}
	n := in.count(0, most, 0)
	return &n
}
