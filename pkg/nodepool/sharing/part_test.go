package sharing_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// The memory on a label bounds what a node promises, and far less than the product has is a part of a card.
func TestFarLessMemoryThanTheProductHasIsNoWholeCard(t *testing.T) {
	const one, below = " n/gpu.count=1 n/gpu.replicas=1", "unknown unknown ? null memory-below-product"
	for _, test := range []struct{ name, marks, want string }{
		{"half of a card with MIG", "n/gpu.product=NVIDIA-A100-SXM4-80GB n/gpu.memory=40960" + one, below},
		{"half of a card without", "n/gpu.product=NVIDIA-L40S n/gpu.memory=23034" + one, below},
		{"half of a card that names its memory", "n/gpu.product=Tesla-V100-SXM2-32GB n/gpu.memory=16384" + one, below},
		{"by ACK's label", "aliyun.accelerator/nvidia_name=NVIDIA-A100-SXM4-80GB aliyun.accelerator/nvidia_mem=40960MiB aliyun.accelerator/nvidia_count=1", below},
		{"by GKE's product and feature discovery's memory", "cloud.google.com/gke-accelerator=nvidia-a100-80gb n/gpu.memory=40960", below},
		{"what ECC takes is not far less", "n/gpu.product=Tesla-T4 n/gpu.memory=15109" + one, `whole hardware 1 {"nvidia.com/gpu":15109}`},
		{"nor what the driver takes", "n/gpu.product=NVIDIA-H200 n/gpu.memory=143771" + one, `whole hardware 1 {"nvidia.com/gpu":143771}`},
		{"a virtual card says so by its name", "n/gpu.product=NVIDIA-L40S-24Q n/gpu.memory=24576" + one, "unknown unknown ? null"},
		{"memory of instances", "n/gpu.product=NVIDIA-A100-SXM4-80GB-MIG-7g.80gb n/gpu.memory=40960" + one, `mig hardware ? {"nvidia.com/gpu":40960}`},
		{"more than the product has", "n/gpu.product=NVIDIA-A100-SXM4-80GB n/gpu.memory=163840" + one, `whole hardware 1 {"nvidia.com/gpu":81920}`},
		{"a model of several sizes", "n/gpu.product=NVIDIA-GeForce-RTX-3080 n/gpu.memory=10240" + one, `whole hardware 1 {"nvidia.com/gpu":10240}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			units := quantities("nvidia.com/gpu", 1)
			got := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Labels: labels(test.marks), Capacity: units, Allocatable: units})
			if summary(got) != test.want {
				t.Errorf("got  %s\nwant %s\n%v", summary(got), test.want, got.Problems)
			}
		})
	}
}
