package planner

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// cutPool is a snapshot of one group of 1g.5gb on cards of pool a, with bundles that require 9 GiB.
func cutPool(asked int64, cards ...sharing.CutCards) Snapshot {
	memory, compute := int64(4864), 1.0/7
	g := pooled("g", 1, onPool("a", 7, 1))
	g.Slice = &Slice{Kind: gpuinfo.MIG, Isolation: gpuinfo.Hardware, Profile: "1g.5gb", Product: "A100 40GB", MemoryMiB: &memory, ComputeFraction: &compute}
	g.Pools[0].Cards = cards
	s := Snapshot{Groups: []Group{g}, Demand: gpuRequests(1, asked)}
	s.Requests[0].Slice = &raydemand.SliceRequirement{Memory: 9 << 30}
	return s
}

func cutCards(count int64, busy *int64, cut ...sharing.Cut) sharing.CutCards {
	return sharing.CutCards{Product: "A100 40GB", Count: count, Cut: cut, Busy: busy}
}

func TestAnotherCutIsAdvisedOfCardsThatAreThere(t *testing.T) {
	small := func(n int64) sharing.Cut { return sharing.Cut{Profile: "1g.5gb", Count: n} }
	tests := []struct {
		name string
		s    Snapshot
		want string
	}{
		{"it is not known what the cards are", cutPool(4), ""},
		{"idle cards only", cutPool(9, cutCards(3, ptr(int64(1)), small(21))), "cut 2 cards of pool a (each now 7 × 1g.5gb) into 4 × 1g.10gb each to serve 8, in a group that asks for them; 1 of 3 cards there in use"},
		{"all are busy", cutPool(9, cutCards(2, ptr(int64(2)), small(14))), "2 cards of pool a (each now 7 × 1g.5gb) in use: once one is idle, cut it into 4 × 1g.10gb to serve 4"},
		{"no more cards than are needed", cutPool(4, cutCards(8, nil, small(56))), "cut 1 card of pool a (now 7 × 1g.5gb) into 4 × 1g.10gb to serve 4, in a group that asks for them; it is unknown which of the 8 cards there are in use"},
		{"several cuts", cutPool(4, cutCards(2, nil, sharing.Cut{Profile: "3g.20gb", Count: 1}, small(9))),
			"cut 2 cards of pool a (the 2 together are now 1 × 3g.20gb + 9 × 1g.5gb) into 4 × 1g.10gb each to serve 4"},
		{"what the card is already", cutPool(4, cutCards(1, nil, sharing.Cut{Profile: "1g.10gb", Count: 4})), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			message := Compute(test.s, Policy{}).InfeasibleRequests[0].Reason.Message
			if test.want == "" && strings.Contains(message, "cut") || !strings.Contains(message, test.want) {
				t.Errorf("%s\nwant … %s", message, test.want)
			}
		})
	}
}

// TestNoCutIsAdvisedIfSomethingElseIsShort: each change makes something other than the slices too small for some or all
// of the nine bundles.
func TestNoCutIsAdvisedIfSomethingElseIsShort(t *testing.T) {
	const cut = "cut 3 cards of pool a (each now 7 × 1g.5gb) into 4 × 1g.10gb each to serve 9"
	cpuOfPool := func(capacity int64) func(s *Snapshot) {
		return func(s *Snapshot) {
			s.Groups[0].Pools[0].Shares = []PoolShare{{Resource: "cpu", Units: 4000, Capacity: capacity}, {Resource: "nvidia.com/gpu", Units: 1, Capacity: 21}}
		}
	}
	fewest := 0
	tests := []struct {
		name   string
		change func(s *Snapshot)
		want   string
	}{
		{"nothing else", func(*Snapshot) {}, cut},
		{"CPU of a pod", func(s *Snapshot) { s.Requests[0].Bundle["CPU"] = raydemand.Whole(5) }, ""},
		{"GPUs of a pod", func(s *Snapshot) { s.Requests[0].Bundle["GPU"] = raydemand.Whole(2) }, ""},
		{"another resource", func(s *Snapshot) { s.Requests[0].Bundle["tpu"] = raydemand.One }, ""},
		{"a label", func(s *Snapshot) {
			s.Requests[0].Selectors = []raydemand.Selector{plannertest.Parse("zone", "b")}
		}, ""},
		{"CPU of the pool", cpuOfPool(3999), ""},
		{"CPU of the pool for some", cpuOfPool(5*4000 + 3999), "cut 2 cards of pool a (each now 7 × 1g.5gb) into 4 × 1g.10gb each to serve 5"},
		{"CPU of the pool, enough", cpuOfPool(9 * 4000), cut},
		{"the bound on all workers", func(s *Snapshot) { s.MaxWorkers = &fewest }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := cutPool(9, cutCards(3, nil, sharing.Cut{Profile: "1g.5gb", Count: 21}))
			s.Groups[0].Labels = map[string]string{"zone": "a"}
			test.change(&s)
			message := Compute(s, Policy{}).InfeasibleRequests[0].Reason.Message
			if strings.Contains(message, "cut ") != (test.want != "") || !strings.Contains(message, test.want) {
				t.Errorf("%s\nwant … %s", message, test.want)
			}
		})
	}
}

// TestAdviceNamesOnePoolOnly: of two groups, the advice names the one whose pods have everything else.
func TestAdviceNamesOnePoolOnly(t *testing.T) {
	s := cutPool(4, cutCards(1, nil, sharing.Cut{Profile: "1g.5gb", Count: 7}))
	small := s.Groups[0]
	small.Name, small.Resources, small.Pools = "small", raydemand.Bundle{"CPU": raydemand.One, "GPU": raydemand.One}, []GroupPool{onPool("b", 7, 1)}
	small.Pools[0].Cards = s.Groups[0].Pools[0].Cards
	s.Groups = append(s.Groups, small)
	s.Requests[0].Bundle["CPU"] = raydemand.Whole(4)
	message := Compute(s, Policy{}).InfeasibleRequests[0].Reason.Message
	if !strings.Contains(message, "cut 1 card of pool a") || strings.Contains(message, "pool b") {
		t.Error(message)
	}
}

// TestFewerGPUsAreAdvisedIfOneDeviceIsEnough, and only if the pod then has everything else.
func TestFewerGPUsAreAdvisedIfOneDeviceIsEnough(t *testing.T) {
	const advice = "group g declares 4 GPUs for 2 × nvidia.com/gpu: set num-gpus to 2, so that each GPU is a whole device, which is enough"
	for name, test := range map[string]struct {
		gpus, cpus int64
		named      bool
	}{
		"one":              {1, 4, true},
		"both":             {2, 4, true},
		"more than it has": {3, 4, false},
		"too little CPU":   {1, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			memory, compute := int64(20<<10), 0.5
			g := pooled("g", 4, onPool("a", 7, 2))
			g.Slice = &Slice{Kind: gpuinfo.Whole, Isolation: gpuinfo.Hardware, MemoryMiB: &memory, ComputeFraction: &compute}
			s := Snapshot{Groups: []Group{g}, Demand: gpuRequests(test.gpus, 1)}
			s.Requests[0].Bundle["CPU"] = raydemand.Whole(test.cpus)
			s.Requests[0].Slice = &raydemand.SliceRequirement{Memory: 30 << 30}
			message := Compute(s, Policy{}).InfeasibleRequests[0].Reason.Message
			if strings.Contains(message, advice) != test.named || strings.Contains(message, "num-gpus") != test.named {
				t.Error(message)
			}
		})
	}
}

func TestARoundedRequirementGetsNoAdvice(t *testing.T) {
	s := cutPool(1, cutCards(1, nil, sharing.Cut{Profile: "1g.5gb", Count: 7}))
	s.Requests[0].Slice = &raydemand.SliceRequirement{ComputeFraction: 0.143}
	message := Compute(s, Policy{}).InfeasibleRequests[0].Reason.Message
	if !strings.Contains(message, "has 0.1429 of a card's compute, needs 0.143") || strings.Contains(message, "cutting") {
		t.Error(message)
	}
}

func TestPoolsWithCardsAndSharesAreReadAsTheyAreWritten(t *testing.T) {
	s := cutPool(1, cutCards(2, ptr(int64(1)), sharing.Cut{Profile: "3g.20gb", Count: 1}, sharing.Cut{Profile: "1g.5gb", Count: 9}), cutCards(4, nil))
	s.Groups[0].Pools[0].Shares = []PoolShare{{Resource: "cpu", Units: 4000, Capacity: 64000}}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "g", "pools": s.Groups[0].Pools}}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := snapshotfile.ReadSnapshot(strings.NewReader(string(text)), "s.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Groups[0].Pools, read.Groups[0].Pools); diff != "" {
		t.Error(diff)
	}
	for from, to := range map[string]string{"A100 40GB": "A1", "3g.20gb": "9g.99gb"} {
		_, err := snapshotfile.ReadSnapshot(strings.NewReader(strings.Replace(string(text), from, to, 1)), "s.json")
		if err == nil || !strings.Contains(err.Error(), "groups[0].pools[0].cards[0]") {
			t.Errorf("%s: %v", to, err)
		}
	}
}
