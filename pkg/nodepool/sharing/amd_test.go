package sharing_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestAMDsNamesAndLabelsSayInWhichModeCardsAre(t *testing.T) {
	const mi300x, nd96 = "amd.com/gpu.product-name=AMD_Instinct_MI300X_OAM ", "node.kubernetes.io/instance-type=Standard_ND96isr_MI300X_v5 "
	tests := []struct {
		name  string
		units map[string]int64
		marks string
		want  string
	}{
		{"cards by their name", quantities("amd.com/spx_nps1", 8, "amd.com/gpu", 0), mi300x, "whole hardware 8 null"},
		{"partitions by their name, as many as cards", quantities("amd.com/cpx_nps4", 8), mi300x + nd96, "unknown unknown 8 null"},
		{"partitions by their name on cards that no label counts", quantities("amd.com/cpx_nps4", 64), mi300x, "unknown unknown 8 null"},
		{"partitions of a card that is in no table", quantities("amd.com/cpx_nps4", 64), "", "unknown unknown ? null"},
		{"halves of cards", quantities("amd.com/dpx_nps1", 4), "", "unknown unknown 2 null"},
		{"cards beside partitions", quantities("amd.com/spx_nps1", 5, "amd.com/cpx_nps1", 24), mi300x, "unknown unknown 8 null"},
		{"cards by the labeller, with memory that it rounded", quantities("amd.com/gpu", 8),
			mi300x + "amd.com/gpu.vram=192G amd.com/compute-memory-partition=spx_nps1", `whole hardware 8 {"amd.com/gpu":196096}`},
		{"cards by the label of HAMi's labeller", quantities("amd.com/gpu", 8), "amd.com/gpu.compute-memory-partition=spx_nps1", "whole hardware 8 null"},
		{"partitions by the labeller, as many as cards", quantities("amd.com/gpu", 8), mi300x + nd96 + "amd.com/compute-memory-partition=cpx_nps4", "unknown unknown 8 null"},
		{"partitions by the labeller, more than cards, which is no surprise", quantities("amd.com/gpu", 63),
			nd96 + "amd.com/compute-memory-partition=cpx_nps4", "unknown unknown 8 null"},
		{"partitions by the operator's profile", quantities("amd.com/gpu", 8), nd96 + "dcm.amd.com/gpu-config-profile=cpx-nps4 dcm.amd.com/gpu-config-profile-state=success", "unknown unknown 8 null"},
		{"a profile with a name of its own", quantities("amd.com/gpu", 8), nd96 + "dcm.amd.com/gpu-config-profile=training dcm.amd.com/gpu-config-profile-state=success", "whole hardware 8 null"},
		{"memory of a whole card", quantities("amd.com/gpu", 8), mi300x + "amd.com/gpu.vram=192G", `whole hardware 8 {"amd.com/gpu":196096}`},
		{"memory of a part", quantities("amd.com/gpu", 8), mi300x + "amd.com/gpu.vram=24G", "unknown unknown ? null memory-below-product"},
		{"memory of a part, as many as cards", quantities("amd.com/gpu", 8), mi300x + nd96 + "amd.com/gpu.vram=24G", "unknown unknown ? null memory-below-product"},
		{"memory of half a card, of the older labeller", quantities("amd.com/gpu", 2), "beta.amd.com/gpu.product-name=AMD_Instinct_MI300X_VF beta.amd.com/gpu.vram=96G",
			"unknown unknown ? null memory-below-product"},
		{"memory of a part under the name of cards", quantities("amd.com/spx_nps1", 8), mi300x + "amd.com/gpu.vram=24G", "unknown unknown ? null memory-below-product"},
		{"partitions with the memory of partitions, which is no surprise", quantities("amd.com/gpu", 64),
			mi300x + nd96 + "amd.com/gpu.vram=24G amd.com/compute-memory-partition=cpx_nps4", "unknown unknown 8 null"},
		{"a card that is in no table, with less memory than others", quantities("amd.com/gpu", 8), "amd.com/gpu.product-name=AMD_Instinct_MI250X amd.com/gpu.vram=64G",
			"whole (unproven) unknown ? null"},
		{"labels alone", nil, "amd.com/compute-memory-partition=cpx_nps4", "unknown unknown ? null"},

		{"a name that the labels contradict", quantities("amd.com/spx_nps1", 63),
			mi300x + "dcm.amd.com/gpu-config-profile=cpx-nps4 dcm.amd.com/gpu-config-profile-state=success", "unknown unknown ? null names-contradict"},
		{"names of both strategies", quantities("amd.com/gpu", 8, "amd.com/cpx_nps4", 64), mi300x, "unknown unknown ? null names-contradict"},
		{"more cards than the machine has", quantities("amd.com/spx_nps1", 16), nd96, "unknown unknown 8 null sharing-unlabelled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Labels: labels(test.marks), Allocatable: test.units})
			if summary(got) != test.want {
				t.Errorf("got  %s\nwant %s", summary(got), test.want)
			}
		})
	}
}
