package nodepool_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTheCardsOfANodeAreToldWhereTheirCutIsKnown(t *testing.T) {
	product, cards := "NVIDIA-A100-SXM4-40GB", int64(2)
	of := func(kind gpuinfo.Kind, change func(*nodepool.NodeGPUs)) nodepool.NodeGPUs {
		n := nodepool.NodeGPUs{Product: &product, Cards: &cards, Kind: kind}
		change(&n)
		return n
	}
	profile, shared := "1g.5gb", int64(4)
	cut := func(name string, n int64) nodepool.CardCut { return nodepool.CardCut{Profile: name, Count: n} }
	tests := []struct {
		name string
		node nodepool.NodeGPUs
		want nodepool.PoolCards
	}{
		{"whole, one asked for", of(gpuinfo.Whole, func(n *nodepool.NodeGPUs) {
			n.Units, n.Free = map[string]int64{"nvidia.com/gpu": 2}, map[string]int64{"nvidia.com/gpu": 1}
		}), nodepool.PoolCards{Product: "A100 40GB", Count: 2, Busy: new(int64(1))}},
		{"several cuts", of(gpuinfo.MIG, func(n *nodepool.NodeGPUs) {
			n.Units = map[string]int64{"nvidia.com/mig-1g.5gb": 9, "nvidia.com/mig-3g.20gb": 1, "nvidia.com/gpu": 0}
		}), nodepool.PoolCards{Product: "A100 40GB", Count: 2, Cut: []nodepool.CardCut{cut("3g.20gb", 1), cut("1g.5gb", 9)}}},
		{"nothing asked for", of(gpuinfo.MIG, func(n *nodepool.NodeGPUs) {
			n.Units, n.Free = map[string]int64{"nvidia.com/mig-1g.5gb": 14}, map[string]int64{"nvidia.com/mig-1g.5gb": 14}
		}), nodepool.PoolCards{Product: "A100 40GB", Count: 2, Cut: []nodepool.CardCut{cut("1g.5gb", 14)}, Busy: new(int64(0))}},
		{"which cards are busy the sum does not tell", of(gpuinfo.MIG, func(n *nodepool.NodeGPUs) {
			n.Units, n.Free = map[string]int64{"nvidia.com/mig-1g.5gb": 14}, map[string]int64{"nvidia.com/mig-1g.5gb": 13}
		}), nodepool.PoolCards{Product: "A100 40GB", Count: 2, Cut: []nodepool.CardCut{cut("1g.5gb", 14)}}},
		{"one profile under the name of cards, which fills them", of(gpuinfo.MIG, func(n *nodepool.NodeGPUs) {
			n.Cards, n.Profile, n.Units = nil, &profile, map[string]int64{"nvidia.com/gpu": 14}
		}), nodepool.PoolCards{Product: "A100 40GB", Count: 2, Cut: []nodepool.CardCut{cut("1g.5gb", 14)}}},
		{"and one that does not", of(gpuinfo.MIG, func(n *nodepool.NodeGPUs) {
			n.Cards, n.Profile, n.Units = nil, &profile, map[string]int64{"nvidia.com/gpu": 9}
		}), nodepool.PoolCards{}},
		{"time-sliced instances", of(gpuinfo.MIG, func(n *nodepool.NodeGPUs) {
			n.Replicas, n.Units = &shared, map[string]int64{"nvidia.com/mig-1g.5gb": 28}
		}), nodepool.PoolCards{}},
		{"time-sliced cards", of(gpuinfo.TimeSliced, func(n *nodepool.NodeGPUs) { n.Units = map[string]int64{"nvidia.com/gpu": 8} }), nodepool.PoolCards{}},
		{"a product that is not known", of(gpuinfo.Whole, func(n *nodepool.NodeGPUs) { n.Product = nil }), nodepool.PoolCards{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, known := test.node.PoolCards()
			if !known {
				got = nodepool.PoolCards{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPoolHasWhatItsNodesHaveAndThoseThatMayBeAdded(t *testing.T) {
	shape := asking(quantities("nvidia.com/gpu", 1, "cpu", 3))
	typed := labelled("node.kubernetes.io/instance-type", "x")
	nodes := []nodepool.Node{
		inPool("a", node("1", announces("nvidia.com/gpu", 4), typed)), inPool("a", node("2", announces("nvidia.com/gpu", 2))),
		inPool("a", node("coming", typed, isNotReady)), inPool("a", node("cpus")),
	}
	rooms := nodepool.PoolRooms(nodes, nodepool.PoolsConfig{}, []nodepool.Ceiling{ceiling("a", 0, 5)})
	has := shape.PoolPods(rooms, nodes)[0].Has
	if got, want := has["nvidia.com/gpu"], raydemand.Whole(4+2+4+4); got != want {
		t.Errorf("has %s GPUs, want %s", got, want)
	}
	if _, bounded := shape.PoolPods(nodepool.PoolRooms(nodes, nodepool.PoolsConfig{}, nil), nodes)[0].Has["cpu"]; bounded {
		t.Error("a pool that may grow is told to have an end")
	}
}
