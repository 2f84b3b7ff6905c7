package nodegpu

import (
	"strconv"
	"strings"
)

// Labels of NVIDIA's GPU feature discovery and operator (k8s-device-plugin, internal/lm). They keep the original
// resource name even if the resource is renamed.
const (
	LabelProduct  = "nvidia.com/gpu.product"
	labelCount    = "nvidia.com/gpu.count"
	labelMemory   = "nvidia.com/gpu.memory"
	labelReplicas = "nvidia.com/gpu.replicas"
	labelSharing  = "nvidia.com/gpu.sharing-strategy"
	labelStrategy = "nvidia.com/mig.strategy"
	labelConfig   = "nvidia.com/mig.config"
	labelState    = "nvidia.com/mig.config.state"
	labelMIG      = "nvidia.com/mig-"
	labelDeploy   = "nvidia.com/gpu.deploy."
	labelVGPU     = "nvidia.com/vgpu.present"
)

// Labels of cloud providers.
const (
	LabelGKEAccelerator = "cloud.google.com/gke-accelerator"
	labelGKESharing     = "cloud.google.com/gke-gpu-sharing-strategy"
	labelGKEClients     = "cloud.google.com/gke-max-shared-clients-per-gpu"
	labelGKEPartition   = "cloud.google.com/gke-gpu-partition-size"
	LabelACKName        = "aliyun.accelerator/nvidia_name"
	labelACKMemory      = "aliyun.accelerator/nvidia_mem"
	labelACKMode        = "ack.node.gpu.schedule"
	labelACKPlacement   = "ack.node.gpu.placement"
)

// instanceTypes are the labels that name the instance type of a node, the current one first.
var instanceTypes = []string{"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}

// cardCounts are the labels that count physical cards.
var cardCounts = []string{
	labelCount, "aliyun.accelerator/nvidia_count", "karpenter.k8s.aws/instance-gpu-count",
	"cloud.google.com/gke-accelerator-count",
}

// memoryText reads ACK's label: 23028MiB, or in older releases with a space or without a unit.
func memoryText(text string) (mib int64, ok bool) {
	digits := strings.TrimRight(strings.TrimSpace(text), "GMKiB ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 {
		return 0, false
	}
	switch strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), digits)) {
	case "", "MiB":
		return n, true
	case "GiB":
		return n * 1024, true
	}
	return 0, false
}
