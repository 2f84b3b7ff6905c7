package sharing_test

import (
	"slices"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestCardsThatLabelsShowAndNothingOffersAreReported(t *testing.T) {
	const nfd = "feature.node.kubernetes.io/"
	none := quantities("vpc.amazonaws.com/efa", 1)
	tests := []struct {
		name    string
		units   map[string]int64
		marks   string
		want    sharing.ProblemCode
		promise string
	}{
		{"Karpenter on AWS", none, "karpenter.k8s.aws/instance-gpu-count=1 karpenter.k8s.aws/instance-gpu-name=l4", sharing.NothingAnnounced, "karpenter.k8s.aws/instance-gpu-count=1"},
		{"Karpenter counts no GPU", none, "karpenter.k8s.aws/instance-gpu-count=0", "", ""},
		{"EKS Auto Mode", none, "eks.amazonaws.com/instance-gpu-count=4", sharing.NothingAnnounced, "eks.amazonaws.com/instance-gpu-count=4"},
		{"Karpenter on Azure", none, "karpenter.azure.com/sku-gpu-count=1", sharing.NothingAnnounced, "karpenter.azure.com/sku-gpu-count=1"},
		{"AKS", none, "kubernetes.azure.com/accelerator=nvidia", sharing.NothingAnnounced, "kubernetes.azure.com/accelerator=nvidia"},
		{"an instance type", none, "node.kubernetes.io/instance-type=Standard_NC4as_T4_v3", sharing.NothingAnnounced, "node.kubernetes.io/instance-type=Standard_NC4as_T4_v3"},
		{"an instance type without GPUs", none, "node.kubernetes.io/instance-type=m5.large", "", ""},
		{"NFD as the GPU operator configures it", none, nfd + "pci-10de.present=true", sharing.NothingAnnounced, nfd + "pci-10de.present=true"},
		{"NFD with the class", none, nfd + "pci-0302_10de.present=true", sharing.NothingAnnounced, nfd + "pci-0302_10de.present=true"},
		{"NFD finds AMD's", none, nfd + "amd-gpu=true " + nfd + "pci-1002.present=true", sharing.NothingAnnounced, nfd + "amd-gpu=true"},
		{"NFD finds Intel's network card", none, nfd + "pci-8086.present=true " + nfd + "pci-0200_8086.present=true", "", ""},
		{"NFD finds Intel's GPU", none, nfd + "pci-0380_8086.present=true", sharing.NothingAnnounced, nfd + "pci-0380_8086.present=true"},
		{"AMD's labeller, and the plugin has none left", quantities("amd.com/gpu", 0), "amd.com/gpu.product-name=AMD_Instinct_MI300X_OAM", sharing.NothingAnnounced, "amd.com/gpu.product-name=AMD_Instinct_MI300X_OAM"},
		{"network devices of NVIDIA's domain are no GPUs", quantities("nvidia.com/mlnxnics", 8), "n/gpu.present=true", sharing.NothingAnnounced, "nvidia.com/gpu.present=true"},
		{"nor are foreign ones", quantities("nvidia.com/resibs2f0", 8), "n/gpu.present=true", sharing.NothingAnnounced, "nvidia.com/gpu.present=true"},
		{"GKE without its plugin", none, "cloud.google.com/gke-accelerator=nvidia-l4 gke-no-default-nvidia-gpu-device-plugin=true", sharing.NoDevicePlugin, "gke-no-default-nvidia-gpu-device-plugin=true keeps GKE's device plugin away"},
		{"GKE without its plugin, and another one runs", quantities("nvidia.com/gpu", 1), "cloud.google.com/gke-accelerator=nvidia-l4 gke-no-default-nvidia-gpu-device-plugin=true", "", ""},
		{"shares under another name", quantities("nvidia.com/gpu.shared", 10), "karpenter.k8s.aws/instance-gpu-count=1", "", ""},
		{"an excerpt without resources", nil, "karpenter.k8s.aws/instance-gpu-count=1 node.kubernetes.io/instance-type=g6.xlarge", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			read := sharing.Reader{}.Read(sharing.NodeObject{Labels: labels(test.marks), Allocatable: test.units})
			label, is := read.Unsupplied()
			reported := test.want == "" || slices.ContainsFunc(read.Problems, func(p sharing.Problem) bool { return p.Code == test.want })
			if is != (test.want != "") || label != test.promise || !reported {
				t.Errorf("got %q of %v, want %s of %q", label, read.Problems, test.want, test.promise)
			}
		})
	}
	offered := sharing.NodeObject{Labels: labels("n/gpu.present=true"), Allocatable: none, Devices: []sharing.DRADevice{{Name: "gpu-0", Type: "gpu"}}}
	if problem, is := (sharing.Reader{}).Read(offered).Unsupplied(); is {
		t.Errorf("a ResourceSlice offers the GPU: %v", problem)
	}
}
