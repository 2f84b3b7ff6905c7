package sharing

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// deploys reports whether the GPU operator's labels say which of its components run here.
func (r *reading) deploys() bool {
	return someOf(r.node.Labels, func(key, _ string) bool { return strings.HasPrefix(key, labelDeploy) })
}

func (n GPUs) HasNVIDIA() bool {
	return someOf(n.Units, func(name string, units int64) bool {
		return units > 0 && (strings.HasPrefix(name, "nvidia.com/") || strings.HasPrefix(name, "aliyun.com/") ||
			strings.HasPrefix(name, "volcano.sh/"))
	})
}

// Labels of NVIDIA's GPU feature discovery and operator (k8s-device-plugin, internal/lm). They keep the original
// resource name even if the resource is renamed.
const (
	LabelProduct  = "nvidia.com/gpu.product"
	labelCount    = "nvidia.com/gpu.count"
	LabelMemory   = "nvidia.com/gpu.memory"
	labelReplicas = "nvidia.com/gpu.replicas"
	labelSharing  = "nvidia.com/gpu.sharing-strategy"
	labelStrategy = "nvidia.com/mig.strategy"
	labelConfig   = "nvidia.com/mig.config"
	labelState    = "nvidia.com/mig.config.state"
	labelMIG      = "nvidia.com/mig-"
	labelDeploy   = "nvidia.com/gpu.deploy."
	labelVGPU     = "nvidia.com/vgpu.present"
	labelWorkload = "nvidia.com/gpu.workload.config"
)

// The values of the label mig.strategy: how NVIDIA's device plugin announces MIG instances.
const (
	strategySingle = "single"
	strategyMixed  = "mixed"
)

// forVirtualMachines reports whether the GPU operator prepares the node for virtual machines: it deploys a plugin for
// KubeVirt, which announces cards and virtual cards under the names of their models, as nvidia.com/GA102GL_A10
// (documentation of NVIDIA's GPU operator, "GPU Operator with KubeVirt").
func (r *reading) forVirtualMachines() bool {
	return slices.Contains([]string{"vm-passthrough", "vm-vgpu"}, r.label(labelWorkload))
}

// oddLabels are labels with few valid values. A later version may have more; then it is unknown what the node offers.
var oddLabels = []struct {
	key  string
	want []string
	// kinds: an unknown value means that it is unknown what a plain resource name offers.
	kinds bool
}{
	{labelStrategy, []string{"none", "single", "mixed"}, true},
	{labelSharing, []string{"none", "time-slicing", "mps"}, true},
	{labelACKPlacement, []string{FullestCard, EmptiestCard}, false},
}

// readOdd recognizes nodes with label values that are unknown, so that it is unknown how GPUs are shared, or among how
// many.
func (r *reading) readOdd() bool {
	odd := r.label(labelReplicas) != "" && !r.readable(labelReplicas)
	for _, label := range oddLabels {
		if value := r.label(label.key); value != "" && !slices.Contains(label.want, value) && label.kinds {
			odd = true
		}
	}
	return odd && r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
}

func (r *reading) readable(key string) bool {
	_, ok := r.number(key)
	return ok
}

// gfdMemory reads the label gpu.memory, in MiB. Feature discovery of 2022 wrote bytes; no device has ten million MiB.
func (r *reading) gfdMemory() (int64, bool) {
	const mostMiB = 10_000_000
	n, ok := r.number(LabelMemory)
	if n > mostMiB {
		n >>= 20
	}
	return n, ok && n > 0
}
