package sharing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestTheCardsOfANodeAreToldWhereTheirCutIsKnown(t *testing.T) {
	product, cards := "NVIDIA-A100-SXM4-40GB", int64(2)
	of := func(kind gpuinfo.Kind, change func(*sharing.GPUs)) sharing.GPUs {
		n := sharing.GPUs{Product: &product, Cards: &cards, Kind: kind}
		change(&n)
		return n
	}
	profile, shared := "1g.5gb", int64(4)
	cut := func(name string, n int64) sharing.Cut { return sharing.Cut{Profile: name, Count: n} }
	tests := []struct {
		name string
		node sharing.GPUs
		want sharing.CutCards
	}{
		{"whole, one asked for", of(gpuinfo.Whole, func(n *sharing.GPUs) {
			n.Units, n.Free = map[string]int64{"nvidia.com/gpu": 2}, map[string]int64{"nvidia.com/gpu": 1}
		}), sharing.CutCards{Product: "A100 40GB", Count: 2, Busy: new(int64(1))}},
		{"several cuts", of(gpuinfo.MIG, func(n *sharing.GPUs) {
			n.Units = map[string]int64{"nvidia.com/mig-1g.5gb": 9, "nvidia.com/mig-3g.20gb": 1, "nvidia.com/gpu": 0}
		}), sharing.CutCards{Product: "A100 40GB", Count: 2, Cut: []sharing.Cut{cut("3g.20gb", 1), cut("1g.5gb", 9)}}},
		{"nothing asked for", of(gpuinfo.MIG, func(n *sharing.GPUs) {
			n.Units, n.Free = map[string]int64{"nvidia.com/mig-1g.5gb": 14}, map[string]int64{"nvidia.com/mig-1g.5gb": 14}
		}), sharing.CutCards{Product: "A100 40GB", Count: 2, Cut: []sharing.Cut{cut("1g.5gb", 14)}, Busy: new(int64(0))}},
		{"which cards are busy the sum does not tell", of(gpuinfo.MIG, func(n *sharing.GPUs) {
			n.Units, n.Free = map[string]int64{"nvidia.com/mig-1g.5gb": 14}, map[string]int64{"nvidia.com/mig-1g.5gb": 13}
		}), sharing.CutCards{Product: "A100 40GB", Count: 2, Cut: []sharing.Cut{cut("1g.5gb", 14)}}},
		{"one profile under the name of cards, which fills them", of(gpuinfo.MIG, func(n *sharing.GPUs) {
			n.Cards, n.Profile, n.Units = nil, &profile, map[string]int64{"nvidia.com/gpu": 14}
		}), sharing.CutCards{Product: "A100 40GB", Count: 2, Cut: []sharing.Cut{cut("1g.5gb", 14)}}},
		{"and one that does not", of(gpuinfo.MIG, func(n *sharing.GPUs) {
			n.Cards, n.Profile, n.Units = nil, &profile, map[string]int64{"nvidia.com/gpu": 9}
		}), sharing.CutCards{}},
		{"time-sliced instances", of(gpuinfo.MIG, func(n *sharing.GPUs) {
			n.Replicas, n.Units = &shared, map[string]int64{"nvidia.com/mig-1g.5gb": 28}
		}), sharing.CutCards{}},
		{"time-sliced cards", of(gpuinfo.TimeSliced, func(n *sharing.GPUs) { n.Units = map[string]int64{"nvidia.com/gpu": 8} }), sharing.CutCards{}},
		{"a product that is not known", of(gpuinfo.Whole, func(n *sharing.GPUs) { n.Product = nil }), sharing.CutCards{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, known := test.node.CutCards()
			if !known {
				got = sharing.CutCards{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
