package planner

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func ptr[T any](v T) *T { return &v }

func mig(profile string, mib int64, compute float64) *Slice {
	return &Slice{Kind: gpuinfo.MIG, MemoryMiB: ptr(mib), ComputeFraction: ptr(compute), Isolation: gpuinfo.Hardware, Profile: profile}
}

var (
	wholeCard = &Slice{Kind: gpuinfo.Whole, MemoryMiB: ptr(int64(81920)), ComputeFraction: ptr(1.0), Isolation: gpuinfo.Hardware}
	timeSlice = &Slice{Kind: gpuinfo.TimeSliced, Isolation: gpuinfo.NoIsolation}
	capped10  = &Slice{Kind: gpuinfo.VGPU, MemoryMiB: ptr(int64(10240)), ComputeFraction: ptr(0.3), Isolation: gpuinfo.Limit}
)

func TestWhatIsWrongWithASliceInAFileIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`"groups": [], "pendingRequests": [{"resources": {}, "count": 1, "slice": {"memory": "10GB"}}]`:  `s.json: pendingRequests[0].slice.memory: "10GB": want `,
		`"groups": [], "keptResources": [{"resources": {}, "count": 1, "slice": {}}]`:                    `s.json: keptResources[0].slice: {}: want an object with memory`,
		`"groups": [], "isolation": "none"`:                                                              `s.json: isolation: "none": want hardware, limit or any`,
		`"groups": [{"name": "g", "slice": {"kind": "half"}}]`:                                           `s.json: groups[0].slice.kind: "half": want whole, whole (unproven), mig, `,
		`"groups": [{"name": "g", "slice": {"memoryMiB": -1}}]`:                                          `s.json: groups[0].slice.memoryMiB: -1: want a whole number from 0 to `,
		`"groups": [{"name": "g", "slice": {"profile": "2g.10gb", "product": "NVIDIA-H100-80GB-HBM3"}}]`: `s.json: groups[0].slice.profile: "2g.10gb": want a profile that H100 80GB has: `,
	} {
		_, err := snapshotfile.ReadSnapshot(strings.NewReader(`{`+text+`}`), "s.json")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s…", text, err, want)
		}
	}
}

// TestAPartOfAGPUHasNoLessThanItsPartOfTheMemory: 0.7 of 22.5 GiB is 15.75 GiB, and 17 GiB on 7 GPUs of 1232 MiB are.
func TestAPartOfAGPUHasNoLessThanItsPartOfTheMemory(t *testing.T) {
	for mib := int64(512); mib < 1<<17; mib += 512 {
		for part := raydemand.Amount(50); part <= raydemand.One; part += 50 {
			need, want := model.SliceNeed{Gpu: part}, mib<<20*int64(part)/int64(raydemand.One)
			if got := need.Share(mib << 20); got != want {
				t.Fatalf("%s of %d MiB is %d bytes, want %d", part, mib, got, want)
			}
		}
	}
	for gpus := int64(1); gpus <= 40; gpus++ {
		for units := int64(1); units <= 200; units++ {
			slice := landing.Slice{UnitsPerPod: units, MemoryMiB: ptr(int64(9856))}
			if got, _ := slice.Each(raydemand.Whole(gpus)); *got != 9856*units/gpus {
				t.Fatalf("%d units of 9856 MiB on %d GPUs are %d MiB each", units, gpus, *got)
			}
		}
	}
}

func TestOneGPUOfAGroupIsWhatItsDevicesAre(t *testing.T) {
	unit := func(kind gpuinfo.Kind, units, mib int64, compute float64) landing.Slice {
		return landing.Slice{Kind: kind, UnitsPerPod: units, MemoryMiB: &mib, ComputeFraction: &compute, Isolation: gpuinfo.Hardware}
	}
	named := unit(gpuinfo.MIG, 1, 10240, 1.0/7)
	named.Nominal, named.Profile = true, ptr("1g.10gb")
	for name, test := range map[string]struct {
		slices []landing.Slice
		gpus   raydemand.Amount
		cards  int64
		want   *int64
	}{
		"eight cards":                     {[]landing.Slice{unit(gpuinfo.Whole, 8, 81920, 1)}, raydemand.Whole(8), 0, ptr(int64(81920))},
		"two cards announced as one GPU":  {[]landing.Slice{unit(gpuinfo.Whole, 2, 81920, 1)}, raydemand.One, 0, ptr(int64(81920))},
		"one card announced as two":       {[]landing.Slice{unit(gpuinfo.Whole, 1, 81920, 1)}, raydemand.Whole(2), 0, ptr(int64(40960))},
		"four units of memory":            {[]landing.Slice{unit(gpuinfo.GPUMemory, 4, 1024, 0.1)}, raydemand.One, 0, ptr(int64(4096))},
		"eight units over two cards":      {[]landing.Slice{unit(gpuinfo.GPUMemory, 8, 1024, 0.1)}, raydemand.Whole(2), 2, ptr(int64(4096))},
		"the round figure in a name":      {[]landing.Slice{named}, raydemand.One, 0, ptr(int64(9728))},
		"two kinds, each counted":         {[]landing.Slice{unit(gpuinfo.MIG, 1, 9728, 0.1), unit(gpuinfo.MIG, 1, 40192, 0.4)}, raydemand.Whole(2), 0, ptr(int64(9728))},
		"two kinds behind one number":     {[]landing.Slice{unit(gpuinfo.MIG, 1, 9728, 0.1), unit(gpuinfo.MIG, 1, 40192, 0.4)}, raydemand.One, 0, nil},
		"no GPU":                          {[]landing.Slice{unit(gpuinfo.Whole, 1, 81920, 1)}, 0, 0, nil},
		"nothing that says what a GPU is": {nil, raydemand.One, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := nodepool.WorkerGroup{Slices: test.slices, Pod: landing.PodShape{CardsAsked: test.cards}}
			var got *int64
			if s := SliceOf(g, test.gpus); s != nil {
				got = s.MemoryMiB
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADrawnSnapshotWithSlicesIsPlannedAlikeOnceItWasWrittenAndRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSliced(t)
		for i := range s.Groups {
			if rapid.Bool().Draw(t, "pools") {
				s.Groups[i].Pools = []GroupPool{onPool("a", rapid.Int64Range(0, math.MaxInt32).Draw(t, "most"), rapid.Int64Range(0, math.MaxInt32).Draw(t, "units"))}
			}
			if slice := s.Groups[i].Slice; slice != nil && rapid.Bool().Draw(t, "odd") {
				odd := *slice
				odd.Product, odd.ComputeFraction, odd.MemoryMiB = "NVIDIA-H100-80GB-HBM3", ptr(1.5), ptr(int64(1<<60))
				odd.Kind, odd.Isolation = "", ""
				s.Groups[i].Slice = &odd
			}
		}
		s = snapshotfile.Exportable(s)
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := snapshotfile.ReadSnapshot(strings.NewReader(string(text)), "s.json")
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(asText(t, Compute(s, Policy{})), asText(t, Compute(again, Policy{}))); diff != "" {
			t.Fatal(diff)
		}
	})
}
