package sharing

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// visible are labels that show that a node has GPUs, whether or not a resource offers them. An empty value stands for
// any but 0 and false. NFD's PCI labels have the vendor alone only if they are configured for GPUs, as NVIDIA's and
// AMD's operators do; of Intel, only its GPUs for servers are of class 0380. Of a node without its resources, an
// excerpt, only the labels in inExcerpts count: nothing but a node with GPUs has them.
var visible = []struct{ label, value, source string }{
	{LabelGKEAccelerator, "", "GKE"},
	{"intel.feature.node.kubernetes.io/gpu", "true", "Intel device plugins, NodeFeatureRule"},
	{"cloud.google.com/gke-gpu", "", "GKE"},
	{"kubernetes.azure.com/accelerator", "", "AKS"},
	{"eks.amazonaws.com/instance-gpu-count", "", "EKS Auto Mode"},
	{"karpenter.k8s.aws/instance-gpu-count", "", "Karpenter on AWS"},
	{"karpenter.azure.com/sku-gpu-count", "", "Karpenter on Azure"},
	{"karpenter.k8s.gcp/instance-gpu-count", "", "Karpenter on Google Cloud"},
	{"aliyun.accelerator/nvidia_count", "", "ACK"},
	{"gpu.nvidia.com/model", "", "CoreWeave"},
	{"nvidia.com/gpu.present", "true", "NVIDIA GPU operator"},
	{"feature.node.kubernetes.io/pci-10de.present", "true", "NFD: NVIDIA"},
	{"feature.node.kubernetes.io/pci-0300_10de.present", "true", "NFD: NVIDIA, with a display"},
	{"feature.node.kubernetes.io/pci-0302_10de.present", "true", "NFD: NVIDIA, without a display"},
	{"amd.com/gpu.product-name", "", "AMD's node labeller"},
	{"amd.com/gpu.device-id", "", "AMD's node labeller"},
	{"feature.node.kubernetes.io/amd-gpu", "true", "AMD GPU operator, NodeFeatureRule"},
	{"feature.node.kubernetes.io/amd-vgpu", "true", "AMD GPU operator, NodeFeatureRule: virtual functions"},
	{"feature.node.kubernetes.io/pci-1002.present", "true", "NFD: AMD"},
	{"feature.node.kubernetes.io/pci-0380_1002.present", "true", "NFD: AMD, display controllers"},
	{"feature.node.kubernetes.io/pci-1200_1002.present", "true", "NFD: AMD, accelerators"},
	{"feature.node.kubernetes.io/pci-0380_8086.present", "true", "NFD: Intel, display controllers"},
}

// showsGPUs returns the label that shows GPUs, or the instance type of a machine that has some.
func (r *reading) showsGPUs() (label string, shows bool) {
	for _, row := range visible {
		value := r.node.Labels[row.label]
		matches := value == row.value || row.value == "" && value != "0" && value != "false"
		if value != "" && matches && (r.gpus.Units != nil || inExcerpts[row.label]) {
			return row.label + "=" + value, true
		}
	}
	for _, key := range instanceTypes {
		if _, known := gpuinfo.MachineOf(r.node.Labels[key]); known && r.gpus.Units != nil {
			return key + "=" + r.node.Labels[key], true
		}
	}
	return "", false
}

var inExcerpts = map[string]bool{LabelGKEAccelerator: true, "intel.feature.node.kubernetes.io/gpu": true}

// nothingAnnounced reports GPUs that labels show and nothing offers.
func (r *reading) nothingAnnounced() {
	if r.supplied {
		return // Dynamic Resource Allocation allocates them
	}
	if r.forVirtualMachines() {
		r.problem(ForVirtualMachines, labelWorkload+"="+r.label(labelWorkload)+
			": the GPU operator gives the cards to virtual machines")
		return
	}
	if r.label(labelDeploy+"device-plugin") == "" && r.deploys() && !r.offers() {
		r.problem(NoDevicePlugin, "the GPU operator deploys no device plugin here; "+
			"this is expected if Dynamic Resource Allocation allocates the GPUs")
		return
	}
	offers := len(r.announced()) > 0 || r.gpus.Kind == gpuinfo.GPUMemory || r.gpus.Kind == gpuinfo.VGPU
	explained := slices.ContainsFunc(r.gpus.Problems, func(p Problem) bool { return p.Code != ResourceForeign })
	promise, shows := r.showsGPUs()
	switch {
	case offers || explained || !shows:
	case r.label(labelGKENoPlugin) == "true":
		r.problem(NoDevicePlugin, labelGKENoPlugin+"=true keeps GKE's device plugin away; "+
			"this is expected if Dynamic Resource Allocation allocates the GPUs")
	default:
		r.problem(NothingAnnounced, promise+nothing)
	}
}

const nothing = ", and no GPU resource is announced"

// Unsupplied reports whether the node has GPUs that no resource offers, and returns what shows them, or why.
func (n GPUs) Unsupplied() (label string, is bool) {
	for _, p := range n.Problems {
		switch p.Code {
		case NothingAnnounced:
			return strings.TrimSuffix(p.Message, nothing), true
		case NoDevicePlugin, ForVirtualMachines:
			label, _, _ = strings.Cut(p.Message, ";")
			return label, true
		}
	}
	return "", false
}
