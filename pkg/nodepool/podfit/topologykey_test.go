package podfit

import (
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The scheduler refuses nodes that lack the label by which pods are spread or kept together.
func TestANodeOutsideOfAllDomainsHoldsNoPod(t *testing.T) {
	const rack, zone = "example.com/rack", "topology.kubernetes.io/zone"
	spread := func(key string) Neighbors { return Neighbors{Spread: []SpreadTerm{{TopologyKey: key, MaxSkew: 1}}} }
	with := func(labels map[string]string) Node {
		return Node{Name: "n", Labels: labels, Allocatable: Quantities{}, Ready: true}
	}
	shape := with(nil)
	shape.Declared = true
	tests := []struct {
		name string
		pod  PodShape
		node Node
		want Outlook
		why  string
	}{
		{"spread by a label that the node has", PodShape{Neighbors: spread(rack)}, with(map[string]string{rack: "1"}), HoldsNow, ""},
		{"spread by a label that it lacks", PodShape{Neighbors: spread(rack)}, with(nil), Never,
			"node n lacks label example.com/rack, the topologyKey of topologySpreadConstraints"},
		{"together by a label that it lacks", PodShape{Neighbors: Neighbors{Together: []PodTerm{{TopologyKey: rack}}}}, with(nil), Never,
			"node n lacks label example.com/rack, the topologyKey of podAffinity"},
		{"apart by a label that it lacks", PodShape{Neighbors: Neighbors{Apart: []PodTerm{{TopologyKey: rack}}}}, with(nil), HoldsNow, ""},
		{"spread by the hostname, which each node has", PodShape{Neighbors: spread(HostnameLabel)}, with(nil), HoldsNow, ""},
		{"a declared shape leaves the zone open", PodShape{Neighbors: spread(zone)}, shape, HoldsNow, ""},
		{"a declared shape has no label of its own", PodShape{Neighbors: spread(rack)}, shape, Never,
			"pool n, as it is declared, lacks label example.com/rack, the topologyKey of topologySpreadConstraints"},
		{"bound without the scheduler", PodShape{NodeName: "n", Neighbors: spread(rack)}, with(nil), HoldsNow, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _ := test.pod.OutlookOn(&test.node, nil)
			if why := test.pod.Fit([]Node{test.node}).Why; got != test.want || why != test.why {
				t.Errorf("outlook %d because %q, want %d, %q", got, why, test.want, test.why)
			}
		})
	}
}

func TestNoCardHasMoreThanAllOfItsMemory(t *testing.T) {
	node := Node{Name: "n", Allocatable: Quantities{gpuinfo.NvidiaGPU: raydemand.Whole(20)},
		GPUs: &sharing.GPUs{Kind: gpuinfo.VGPU}, Ready: true}
	for percent, want := range map[int64]Outlook{100: HoldsNow, 150: Never} {
		pod := PodShape{Requests: Quantities{gpuinfo.NvidiaGPU: raydemand.One, gpuinfo.HAMiMemoryPercentage: raydemand.Whole(percent)}}
		if got, misses := pod.OutlookOn(&node, nil); got != want {
			t.Errorf("%d percent: outlook %d for %v, want %d", percent, got, misses, want)
		}
	}
	const why = "node n has 100 percent of the memory of each card where nvidia.com/gpumem-percentage 150 of one card is needed"
	pod := PodShape{Requests: Quantities{gpuinfo.NvidiaGPU: raydemand.One, gpuinfo.HAMiMemoryPercentage: raydemand.Whole(150)}}
	if got := pod.Fit([]Node{node}).Why; got != why {
		t.Errorf("because %q, want %q", got, why)
	}
	pod.Requests[gpuinfo.HAMiMemory] = raydemand.Whole(1000)
	if misses := pod.Mismatches(&node, nil); len(misses) > 0 {
		t.Errorf("HAMi ignores the percentage beside an amount, got %v", misses)
	}
}
