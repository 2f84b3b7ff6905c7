package planner

import (
	"encoding/json"
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

// sliced is a group of one GPU and some CPUs whose GPU is this slice.
func sliced(name string, s *Slice) Group {
	return Group{Name: name, Resources: raydemand.Bundle{"CPU": raydemand.Whole(4), "GPU": raydemand.One}, Max: 10, NumOfHosts: 1, Slice: s}
}

func mig(profile string, mib int64, compute float64) *Slice {
	return &Slice{Kind: gpuinfo.MIG, MemoryMiB: ptr(mib), ComputeFraction: ptr(compute), Isolation: gpuinfo.Hardware, Profile: profile}
}

var (
	wholeCard = &Slice{Kind: gpuinfo.Whole, MemoryMiB: ptr(int64(81920)), ComputeFraction: ptr(1.0), Isolation: gpuinfo.Hardware}
	timeSlice = &Slice{Kind: gpuinfo.TimeSliced, Isolation: gpuinfo.NoIsolation}
	capped10  = &Slice{Kind: gpuinfo.VGPU, MemoryMiB: ptr(int64(10240)), ComputeFraction: ptr(0.3), Isolation: gpuinfo.Limit}
)

func requiring(gpus raydemand.Amount, requirement raydemand.SliceRequirement) raydemand.Request {
	return raydemand.Request{Bundle: raydemand.Bundle{"GPU": gpus}, Count: 1, Slice: &requirement}
}

func TestHalfAGPUIsReportedInMemory(t *testing.T) {
	s := Snapshot{Groups: []Group{sliced("g", mig("1g.10gb", 9728, 1.0/7))}}
	s.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One / 2}, Count: 1}}
	if got, want := Compute(s, Policy{}).Groups[0].Reasons[0].Message, "launching 1 pod for 1 × {GPU 0.5} (0.5 of a slice 1g.10gb, 4.75 GiB)"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestSlicesOfWhichNothingIsKnownAreOneFinding(t *testing.T) {
	s := Snapshot{Groups: []Group{sliced("a", nil), sliced("b", nil)}}
	s.Requests = []raydemand.Request{requiring(raydemand.One, raydemand.SliceRequirement{Memory: 1}), requiring(raydemand.One, raydemand.SliceRequirement{Memory: 2})}
	findings := Compute(s, Policy{}).Findings
	if len(findings) != 1 || findings[0].Code != model.FindingSlicesUnknown {
		t.Errorf("findings: %+v", findings)
	}
	s.Groups[1].Slice = &Slice{Kind: gpuinfo.WholeUnproven, Isolation: gpuinfo.UnknownIsolation}
	if findings := Compute(s, Policy{}).Findings; len(findings) != 1 || !strings.Contains(findings[0].Fix, "--resource") {
		t.Errorf("findings about cards without proof: %+v", findings)
	}
	s.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 1}}
	if plan := Compute(s, Policy{}); len(plan.Findings) != 0 || plan.Launch["a"] != 1 {
		t.Errorf("plain demand: %+v", plan)
	}
}

func TestTheLargerRequirementTakesTheLargerSliceInAnyOrder(t *testing.T) {
	s := Snapshot{Groups: []Group{sliced("a-whole", wholeCard), sliced("b-1g", mig("1g.10gb", 9728, 1.0/7))}}
	for _, g := range s.Groups {
		s.Nodes = append(s.Nodes, Node{Pod: g.Name + "-1", Group: g.Name, State: Idle, Total: g.Resources, Available: g.Resources})
	}
	small, large := requiring(raydemand.One, raydemand.SliceRequirement{Memory: 8 << 30}), requiring(raydemand.One, raydemand.SliceRequirement{Memory: 40 << 30})
	small.Bundle["CPU"] = raydemand.One // otherwise more kinds of resources would put it first
	for _, requests := range [][]raydemand.Request{{small, large}, {large, small}} {
		s.Requests = requests
		if launch := Compute(s, Policy{}).Launch; len(launch) > 0 {
			t.Errorf("launches %v, and both fit", launch)
		}
	}
}

func TestAPriceGoesBeforeWhatASliceWastes(t *testing.T) {
	dear, cheap := sliced("a-1g", mig("1g.10gb", 9728, 1.0/7)), sliced("b-whole", wholeCard)
	dear.Price, cheap.Price = ptr(2.0), ptr(1.9)
	s := Snapshot{Groups: []Group{dear, cheap}, Demand: raydemand.Demand{Requests: []raydemand.Request{requiring(raydemand.One, raydemand.SliceRequirement{Memory: 1 << 30})}}}
	if got := Compute(s, Policy{}).Launch; got["b-whole"] != 1 {
		t.Errorf("launches %v", got)
	}
	cheap.Price = ptr(2.0)
	s.Groups = []Group{dear, cheap}
	if got := Compute(s, Policy{}).Launch; got["a-1g"] != 1 {
		t.Errorf("at one price it launches %v", got)
	}
}

func TestAGroupPassedOverForItsWasteSaysSo(t *testing.T) {
	s := Snapshot{Groups: []Group{sliced("a-whole", wholeCard), sliced("b-1g", mig("1g.10gb", 9728, 1.0/7))}}
	s.Requests = []raydemand.Request{requiring(raydemand.One, raydemand.SliceRequirement{Memory: 1 << 30})}
	want := Reason{Code: model.CodeNotChosen, Message: "{GPU 1} of 1 GiB: group b-1g was chosen: it wastes less GPU memory, slice 1g.10gb instead of whole card"}
	if diff := cmp.Diff(want, Compute(s, Policy{}).Groups[0].Reasons[0]); diff != "" {
		t.Error(diff)
	}
}

func TestOfTwoAlikeTheOneThatLeavesLargeInstancesPossibleIsTaken(t *testing.T) {
	fragmenting, sparing := mig("1g.10gb", 9728, 1.0/7), mig("1g.10gb", 9728, 1.0/7)
	fragmenting.Blocks, sparing.Blocks = ptr(int64(2)), ptr(int64(0))
	s := Snapshot{Groups: []Group{sliced("a", fragmenting), sliced("b", sparing)}}
	s.Requests = []raydemand.Request{requiring(raydemand.One, raydemand.SliceRequirement{Memory: 1 << 30})}
	if got := Compute(s, Policy{}).Launch; got["b"] != 1 {
		t.Errorf("launches %v", got)
	}
}

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

func TestARequirementIsReadFromAFile(t *testing.T) {
	s := Snapshot{Groups: []Group{sliced("g", mig("1g.10gb", 9728, 0.125))}, Isolation: nodepool.RequireLimit}
	s.Requests = []raydemand.Request{requiring(raydemand.One, raydemand.SliceRequirement{Memory: 4864 << 20, ComputeFraction: 0.1, Isolation: "any"})}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := snapshotfile.ReadSnapshot(strings.NewReader(string(text)), "s.json")
	if err != nil {
		t.Fatal(err)
	}
	written := func(p Plan) string { text, _ := json.Marshal(p); return string(text) }
	if a, b := written(Compute(s, Policy{})), written(Compute(again, Policy{})); a != b || !s.Requests[0].Slice.Equal(again.Requests[0].Slice) {
		t.Errorf("%s\nread again: %s", a, b)
	}
	if diff := cmp.Diff(s.Groups[0].Slice, again.Groups[0].Slice); diff != "" {
		t.Error(diff)
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
				s.Groups[i].Pools = []GroupPool{onPool("a", rapid.Int64Range(-1, 1<<50).Draw(t, "most"), rapid.Int64Range(-1, 1<<50).Draw(t, "units"))}
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
