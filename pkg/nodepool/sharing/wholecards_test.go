package sharing_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// How many units there are proves nothing: every way of sharing can announce any number of them. Labels do, or as many
// units as cards.
func TestCardsAreWholeOnlyWhereTheNodeProvesIt(t *testing.T) {
	tests := []struct {
		name  string
		units map[string]int64
		marks string
		want  string
	}{
		{"one unit", quantities("nvidia.com/gpu", 1), "", "whole (unproven) unknown ? null"},
		{"twelve units", quantities("nvidia.com/gpu", 12), "", "whole (unproven) unknown ? null"},
		{"more than any machine has", quantities("nvidia.com/gpu", 56), "", "unknown unknown ? null"},
		{"none left", quantities("nvidia.com/gpu", 0), "n/gpu.present=true", "unknown unknown ? null nothing-announced"},
		{"MetaX's plugin shares cards under another name", quantities("metax-tech.com/gpu", 8), "", "whole hardware ? null"},
		{"AMD's, maybe partitions", quantities("amd.com/gpu", 8), "", "whole (unproven) unknown ? null"},
		{"Intel's, maybe shares by shared-dev-num", quantities("gpu.intel.com/i915", 10), "", "whole (unproven) unknown ? null"},
		{"Intel's with the xe driver", quantities("gpu.intel.com/xe", 2), "", "whole (unproven) unknown ? null"},
		{"Intel's, as many as cards", quantities("gpu.intel.com/i915", 2), "gpu.intel.com/device-id.0380-56c1.count=2", "whole hardware 2 null"},
		{"Intel's, more than cards", quantities("gpu.intel.com/i915", 10), "gpu.intel.com/device-id.0380-56c1.count=1", "unknown unknown 1 null sharing-unlabelled"},
		{"a plugin that gives one card to many pods", quantities("microsoft.com/directx", 1), "node.kubernetes.io/instance-type=Standard_NC4as_T4_v3", "whole (unproven) unknown 1 null"},
		{"Gaudi's plugin shares nothing", quantities("habana.ai/gaudi", 8), "", "whole hardware ? null"},

		{"a product without -SHARED", quantities("nvidia.com/gpu", 8), "n/gpu.product=NVIDIA-H100-80GB-HBM3", `whole hardware ? {"nvidia.com/gpu":81152}`},
		{"as many as gpu.count", quantities("nvidia.com/gpu", 4), "n/gpu.count=4", "whole hardware 4 null"},
		{"fewer than gpu.count", quantities("nvidia.com/gpu", 2), "n/gpu.count=4", "whole (unproven) unknown 4 null"},
		{"as many as gpu.count, which counts instances with the single strategy", quantities("nvidia.com/gpu", 7), "n/gpu.count=7 n/mig.strategy=single", "whole (unproven) unknown 7 null"},
		{"one replica", quantities("nvidia.com/gpu", 4), "n/gpu.replicas=1", "whole hardware ? null"},
		{"no sharing", quantities("nvidia.com/gpu", 4), "n/gpu.sharing-strategy=none", "whole hardware ? null"},
		{"one replica of a card or of an instance", quantities("nvidia.com/gpu", 4), "n/gpu.replicas=1 n/mig.strategy=single", "whole (unproven) unknown ? null"},
		{"a strategy alone", quantities("nvidia.com/gpu", 4), "n/mig.strategy=mixed", "whole (unproven) unknown ? null"},
		{"the driver is there", quantities("nvidia.com/gpu", 4), "n/gpu.present=true n/gpu.memory=15360", "whole (unproven) unknown ? null"},
		{"GKE labels all sharing", quantities("nvidia.com/gpu", 2), "cloud.google.com/gke-accelerator=nvidia-l4", "whole hardware ? null"},
		{"more than N1 can have", quantities("nvidia.com/gpu", 10), "cloud.google.com/gke-accelerator=nvidia-tesla-t4", "unknown unknown ? null sharing-unlabelled"},
		{"more than GKE's count", quantities("nvidia.com/gpu", 4), "cloud.google.com/gke-accelerator=nvidia-l4 cloud.google.com/gke-accelerator-count=1", "unknown unknown 1 null sharing-unlabelled"},
		{"ACK's default mode", quantities("nvidia.com/gpu", 4, "aliyun.com/gpu-mem", 0), "ack.node.gpu.schedule=default", "whole hardware ? null"},
		{"as many as ACK counts", quantities("nvidia.com/gpu", 4), "aliyun.accelerator/nvidia_count=4", "whole hardware 4 null"},
		{"as many as Karpenter counts", quantities("nvidia.com/gpu", 8), "karpenter.k8s.aws/instance-gpu-count=8", "whole hardware 8 null"},

		{"as many as the machine has", quantities("nvidia.com/gpu", 8), "node.kubernetes.io/instance-type=p4d.24xlarge", "whole hardware 8 null"},
		{"AMD's machine", quantities("amd.com/gpu", 8), "node.kubernetes.io/instance-type=Standard_ND96isr_MI300X_v5", "whole hardware 8 null"},
		{"fewer than the machine has", quantities("nvidia.com/gpu", 4), "node.kubernetes.io/instance-type=p4d.24xlarge", "whole (unproven) unknown 8 null"},
		{"ten on one T4", quantities("nvidia.com/gpu", 10), "node.kubernetes.io/instance-type=g4dn.xlarge", "unknown unknown 1 null sharing-unlabelled"},
		{"by the older label", quantities("nvidia.com/gpu", 10), "beta.kubernetes.io/instance-type=g4dn.xlarge", "unknown unknown 1 null sharing-unlabelled"},
		{"fifty-six on a machine with eight", quantities("nvidia.com/gpu", 56), "node.kubernetes.io/instance-type=Standard_ND96asr_v4", "unknown unknown 8 null sharing-unlabelled"},
		{"a machine that is in no table", quantities("nvidia.com/gpu", 1), "node.kubernetes.io/instance-type=k3s", "whole (unproven) unknown ? null"},
		{"half a card, which GKE counts as one", quantities("nvidia.com/gpu", 1), "node.kubernetes.io/instance-type=g4-standard-24 cloud.google.com/gke-accelerator=nvidia-rtx-pro-6000 cloud.google.com/gke-accelerator-count=1", "unknown unknown ? null"},
		{"a whole card of the same family", quantities("nvidia.com/gpu", 1), "node.kubernetes.io/instance-type=g4-standard-48 cloud.google.com/gke-accelerator=nvidia-rtx-pro-6000 cloud.google.com/gke-accelerator-count=1", `whole hardware 1 {"nvidia.com/gpu":97280}`},
		{"a sixth of a card", quantities("nvidia.com/gpu", 1), "node.kubernetes.io/instance-type=Standard_NV6ads_A10_v5", "unknown unknown ? null"},
		{"an eighth of a card, with labels", quantities("nvidia.com/gpu", 1), "node.kubernetes.io/instance-type=g6f.large n/gpu.product=NVIDIA-L4-3Q n/gpu.count=1 n/gpu.replicas=1", "unknown unknown ? null"},
		{"a virtual card", quantities("nvidia.com/gpu", 1), "n/gpu.product=NVIDIA-A10-4Q n/gpu.count=1 n/gpu.replicas=1", "unknown unknown ? null"},
		{"a virtual card without product", quantities("nvidia.com/gpu", 1), "n/vgpu.present=true n/gpu.count=1", "unknown unknown ? null"},

		{"left-over instances", quantities("nvidia.com/gpu", 7, "nvidia.com/mig-1g.5gb", 0), "", "mig (unproven) unknown ? null"},
		{"left-over instances on a machine with fewer cards", quantities("nvidia.com/gpu", 56, "nvidia.com/mig-1g.5gb", 0), "node.kubernetes.io/instance-type=p4d.24xlarge", "mig (unproven) unknown ? null"},
		{"left-over instances, and as many as cards", quantities("nvidia.com/gpu", 8, "nvidia.com/mig-7g.40gb", 0), "node.kubernetes.io/instance-type=p4d.24xlarge", "mig (unproven) unknown ? null"},
		{"left-over instances, and MIG is off by the product", quantities("nvidia.com/gpu", 8, "nvidia.com/mig-1g.5gb", 0), "n/gpu.product=NVIDIA-A100-SXM4-40GB", `whole hardware ? {"nvidia.com/gpu":40192}`},

		{"cards beside instances", quantities("nvidia.com/gpu", 4, "nvidia.com/mig-1g.5gb", 28), "", "mig unknown ? null"},
		{"none beside instances", quantities("nvidia.com/gpu", 0, "nvidia.com/mig-1g.5gb", 28), "", "mig hardware ? null"},
		{"more instances than the cards can have", quantities("nvidia.com/mig-1g.5gb", 28), "n/gpu.product=NVIDIA-A100-SXM4-40GB n/gpu.count=1", "unknown unknown 1 null sharing-unlabelled"},

		{"more instances than feature discovery counts", quantities("nvidia.com/mig-1g.5gb", 28), "n/mig-1g.5gb.count=7", "unknown unknown ? null sharing-unlabelled"},
		{"more units than instances of the single strategy", quantities("nvidia.com/gpu", 28), "n/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb n/gpu.count=7 n/gpu.memory=4864 n/mig.strategy=single", "unknown unknown ? null sharing-unlabelled"},
		{"shares of instances without their number", quantities("nvidia.com/gpu", 28), "n/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED n/gpu.count=7 n/mig.strategy=single", "time-sliced none ? null"},

		{"old feature discovery, single strategy", quantities("nvidia.com/gpu", 7), "n/gpu.product=A100-PCIE-40GB-MIG-1g.5gb n/gpu.count=7 n/mig.strategy=single", "mig hardware 1 null"},
		{"and two cards", quantities("nvidia.com/gpu", 14), "n/gpu.product=A100-PCIE-40GB-MIG-1g.5gb n/gpu.count=14 n/mig.strategy=single", "mig hardware 2 null"},
		{"and the machine's", quantities("nvidia.com/gpu", 14), "n/gpu.product=A100-PCIE-40GB-MIG-1g.5gb n/gpu.count=14 n/mig.strategy=single node.kubernetes.io/instance-type=p4d.24xlarge", "mig hardware 8 null"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Labels: labels(test.marks), Capacity: test.units, Allocatable: test.units})
			if diff := cmp.Diff(test.want, summary(got)); diff != "" {
				t.Errorf("kind, isolation, cards, memory, problems (-want +got):\n%s\n%v", diff, got.Problems)
			}
		})
	}
}

// Heliostat's agent counts the cards, and sees whether they are partitioned.
func TestTheDriverProvesHowManyCardsThereAre(t *testing.T) {
	const card = `{"index":0,"uuid":"GPU-1","product":"NVIDIA A100-SXM4-40GB","memoryMiB":40960,"mig":{"enabled":false,"instances":[]},"healthy":true}`
	for _, test := range []struct {
		card string
		want string
	}{
		{card, "whole hardware 1 null"},
		{card + "," + strings.ReplaceAll(card, `"index":0`, `"index":1`), "whole (unproven) unknown 2 null"},
		{strings.ReplaceAll(card, `"enabled":false`, `"enabled":true`), "whole (unproven) unknown 1 null"},
	} {
		node := sharing.NodeObject{Allocatable: quantities("nvidia.com/gpu", 1),
			Annotations: map[string]string{sharing.AgentAnnotation: `{"at":"2026-08-20T12:00:00Z","cards":[` + test.card + `]}`}}
		if got := summary(sharing.Reader{}.Read(node)); got != test.want {
			t.Errorf("%s\ngot %s, want %s", test.card, got, test.want)
		}
	}
}

func TestMemoryWithoutIsolationIsReadByItsResources(t *testing.T) {
	tests := []struct {
		name  string
		units map[string]int64
		marks string
		want  string
		each  int64
	}{
		{"Volcano's older plugin", quantities("volcano.sh/gpu-memory", 32768, "volcano.sh/gpu-number", 2), "", `gpu-mem none 2 {"volcano.sh/gpu-memory":1}`, 16384},
		{"without the number of cards", quantities("volcano.sh/gpu-memory", 32768), "", `gpu-mem none ? {"volcano.sh/gpu-memory":1}`, -1},
		{"of one card", quantities("volcano.sh/gpu-memory", 15109, "volcano.sh/gpu-number", 1, "nvidia.com/gpu", 0), "", `gpu-mem none 1 {"volcano.sh/gpu-memory":1}`, 15109},
		{"whose devices are gone", quantities("volcano.sh/gpu-memory", 0, "volcano.sh/gpu-number", 2), "", "gpu-mem none 2 null memory-missing", 0},
		{"whole cards of Volcano's older plugin", quantities("volcano.sh/gpu-number", 2), "", "whole hardware ? null", -1},
		{"Volcano's vGPU", quantities("volcano.sh/vgpu-number", 10, "volcano.sh/vgpu-memory", 8192, "volcano.sh/vgpu-cores", 100), "", `vgpu limit 1 {"volcano.sh/vgpu-memory":1}`, -1},
		{"gpushare whose devices are gone", quantities("aliyun.com/gpu-mem", 0, "aliyun.com/gpu-count", 4), "", "gpu-mem none 4 null memory-missing", 0},
		{"ACK whose devices are gone", quantities("aliyun.com/gpu-mem", 0, "aliyun.com/gpu-count", 4), "ack.node.gpu.schedule=cgpu", "gpu-mem limit 4 null memory-missing", 0},
		{"names of another mode", quantities("aliyun.com/gpu-mem", 0, "aliyun.com/gpu-count", 4, "nvidia.com/gpu", 4), "ack.node.gpu.schedule=default", "whole hardware 4 null", -1},
		{"names without cards", quantities("aliyun.com/gpu-mem", 0, "aliyun.com/gpu-count", 0), "", "unknown unknown ? null", -1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Labels: labels(test.marks), Capacity: test.units, Allocatable: test.units})
			if diff := cmp.Diff(test.want, summary(got)); diff != "" {
				t.Errorf("kind, isolation, cards, memory, problems (-want +got):\n%s\n%v", diff, got.Problems)
			}
			for name, units := range got.UnitsPerCard {
				if strings.HasPrefix(name, "volcano.sh/v") {
					continue
				}
				if units != test.each {
					t.Errorf("%s: %d on each card, want %d", name, units, test.each)
				}
			}
			if got.UnitsPerCard == nil && test.each >= 0 {
				t.Errorf("units of a card are unknown, want %d", test.each)
			}
		})
	}
}
