package planner

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// drawSlice draws the GPUs of a group, sometimes partly unknown.
func drawSlice(t *rapid.T) *Slice {
	s := rapid.SampledFrom([]*Slice{
		nil, wholeCard, timeSlice, capped10, mig("1g.10gb", 9728, 1.0/7), mig("3g.40gb", 40192, 3.0/7),
		{Kind: gpuinfo.GPUMemory, MemoryMiB: ptr(int64(4096)), Isolation: gpuinfo.Limit}, {Kind: gpuinfo.Whole, Isolation: gpuinfo.Hardware},
	}).Draw(t, "slice")
	return s
}

func drawRequirement(t *rapid.T) *raydemand.SliceRequirement {
	return rapid.SampledFrom([]*raydemand.SliceRequirement{
		nil, nil, {Memory: 4 << 30}, {Memory: 9 << 30, Isolation: "hardware"}, {Memory: 20 << 30}, {ComputeFraction: 0.25}, {Isolation: "any"}, {Isolation: "limit"},
	}).Draw(t, "requirement")
}

func drawSliced(t *rapid.T) Snapshot {
	s := drawSnapshot(t)
	for i := range s.Groups {
		s.Groups[i].Slice = drawSlice(t)
	}
	for i := range s.Requests {
		if requirement := drawRequirement(t); requirement != nil {
			s.Requests[i].Slice = requirement
			s.Requests[i] = s.Requests[i].Sliced()
		}
	}
	s.Isolation = rapid.SampledFrom([]nodepool.RequiredIsolation{"", "", nodepool.RequireLimit, nodepool.RequireHardware, nodepool.AnyIsolation}).Draw(t, "isolation")
	return s
}

func TestNoRequirementIsPlacedOnLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSliced(t)
		p, _, out := place.Decide(&s, Policy{})
		for _, e := range out.Log {
			if g := p.Groups[e.Group]; !e.Item.Slice.Allows(g.Slice) {
				t.Fatalf("%s is launched for on group %s, whose GPUs are %v", Describe(e.Item.Request), g.Name, g.Slice)
			}
		}
	})
}

// drawPooled draws a snapshot with slices, and with pools that several groups share.
func drawPooled(t *rapid.T) Snapshot {
	s := drawSliced(t)
	for i := range s.Groups {
		for _, name := range []string{"a", "b"}[:rapid.IntRange(0, 2).Draw(t, "pools")] {
			s.Groups[i].Pools = append(s.Groups[i].Pools, onPool(name, rapid.Int64Range(0, 6).Draw(t, "most"), rapid.Int64Range(1, 3).Draw(t, "units")))
		}
	}
	return s
}

func TestSlicesChangeNothingWithoutRequirements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		bare := Compute(s, Policy{})
		for i := range s.Groups {
			s.Groups[i].Slice = drawSlice(t)
		}
		with := Compute(s, Policy{})
		for i := range with.Groups {
			with.Groups[i].Slice = nil
		}
		if diff := cmp.Diff(asText(t, bare), asText(t, with)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func asText(t *rapid.T, plan Plan) string {
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
