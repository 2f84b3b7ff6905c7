package gpuinfo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Role is what the units of a resource count.
type Role string

// The roles of resources.
const (
	// Devices are what a container is allocated: cards, instances or shares.
	Devices Role = "devices"
	// Memory is an amount of GPU memory. Cores is a percentage of the multiprocessors of a card. Pods request both with
	// devices or, with gpu-mem, alone.
	Memory Role = "memory"
	Cores  Role = "cores"
	// Information describes the node. Pods must not request it.
	Information Role = "information"
)

// Resource is the meaning of the name of an extended resource.
type Resource struct {
	Name string
	// Kind is UnknownKind if the name alone does not show it. For example, nvidia.com/gpu can be a card, an instance,
	// or a share of either.
	Kind Kind
	Role Role
	// Profile is the profile of a MIG instance in the format of nvidia-smi; empty for other resources.
	Profile string
	// Shared is true if the name shows that the plugin announces each device several times.
	Shared bool
	// Unit is the memory of one unit; 0 if the name does not show it.
	Unit MiB
	// Source is the source of the row.
	Source string
}

const (
	nvidia = "nvidia.com/"
	amd    = "amd.com/"
	// shared is the suffix that NVIDIA's plugin adds with renameByDefault (NDP, internal/rm).
	shared = ".shared"
	// MIGPrefix begins the names of MIG profiles as NVIDIA's device plugin announces them.
	MIGPrefix = nvidia + "mig-"
)

// The names of resources that rules depend on.
const (
	NvidiaGPU       = nvidia + "gpu"
	AMDGPU          = amd + "gpu"
	AliyunMemory    = "aliyun.com/gpu-mem"
	AliyunCores     = "aliyun.com/gpu-core.percentage"
	AliyunCount     = "aliyun.com/gpu-count"
	VolcanoNumber   = "volcano.sh/vgpu-number"
	VolcanoMemory   = "volcano.sh/vgpu-memory"
	VolcanoCores    = "volcano.sh/vgpu-cores"
	NvidiaGPUShared = NvidiaGPU + shared

	// VolcanoShared and VolcanoCards are of Volcano's older device plugin, the others of its vGPU plugin.
	VolcanoShared = "volcano.sh/gpu-memory"
	VolcanoCards  = "volcano.sh/gpu-number"

	VolcanoMemoryPercentage = "volcano.sh/vgpu-memory-percentage"

	HAMiMemory           = nvidia + "gpumem"
	HAMiMemoryPercentage = nvidia + "gpumem-percentage"
	HAMiCores            = nvidia + "gpucores"

	// KoordinatorBoth requests the same percentage of a card's memory and cores.
	KoordinatorBoth        = "koordinator.sh/gpu"
	KoordinatorShared      = "koordinator.sh/gpu.shared"
	KoordinatorCores       = "koordinator.sh/gpu-core"
	KoordinatorMemory      = "koordinator.sh/gpu-memory"
	KoordinatorMemoryRatio = "koordinator.sh/gpu-memory-ratio"
)

// resources are the fixed names. Those of MIG follow a grammar.
var resources = []Resource{
	{Name: NvidiaGPU, Kind: UnknownKind, Role: Devices,
		Source: "NDP: cards, with the single strategy MIG instances, with sharing either of them several times"},
	{Name: NvidiaGPUShared, Kind: UnknownKind, Role: Devices, Shared: true,
		Source: "NDP: renameByDefault, with time-slicing or MPS"},
	{Name: AMDGPU, Kind: UnknownKind, Role: Devices,
		Source: "ROCm/k8s-device-plugin: cards, or partitions of them"},
	{Name: "gpu.intel.com/i915", Kind: UnknownKind, Role: Devices,
		Source: "Intel device plugins: cards, or with shared-dev-num shares of them"},
	{Name: "gpu.intel.com/xe", Kind: UnknownKind, Role: Devices,
		Source: "Intel device plugins: as i915, with the xe driver"},
	{Name: "gpu.intel.com/i915_monitoring", Kind: UnknownKind, Role: Information,
		Source: "Intel device plugins: all cards, to watch them"},
	{Name: "gpu.intel.com/xe_monitoring", Kind: UnknownKind, Role: Information,
		Source: "Intel device plugins: all cards, to watch them"},
	{Name: "gpu.intel.com/millicores", Kind: UnknownKind, Role: Cores,
		Source: "Intel GPU-aware scheduling: thousandths of a card"},
	{Name: "gpu.intel.com/memory.max", Kind: UnknownKind, Role: Memory, Source: "Intel GPU-aware scheduling: bytes"},
	{Name: "gpu.intel.com/tiles", Kind: UnknownKind, Role: Information,
		Source: "Intel GPU-aware scheduling: tiles of all cards"},
	{Name: "microsoft.com/directx", Kind: UnknownKind, Role: Devices, Source: "AKS Windows: the DirectX device plugin"},
	{Name: "habana.ai/gaudi", Kind: Whole, Role: Devices, Source: "Cluster Autoscaler's list of GPU resources"},
	{Name: "metax-tech.com/gpu", Kind: Whole, Role: Devices,
		Source: "HAMi, MetaX: whole cards, and parts are metax-tech.com/sgpu; Ray: metax_gpu.py"},

	{Name: "aliyun.com/gpu", Kind: Whole, Role: Devices, Source: "ACK: topology-aware scheduling"},
	{Name: AliyunMemory, Kind: GPUMemory, Role: Memory,
		Source: "ACK and gpushare: GiB, but gpushare can be set to MiB and ACK's share mode to 128 MiB"},
	{Name: AliyunCores, Kind: GPUMemory, Role: Cores, Source: "ACK core_mem: 100 for each card"},
	{Name: AliyunCount, Kind: GPUMemory, Role: Information, Source: "ACK and gpushare: cards of the node"},

	{Name: HAMiMemory, Kind: VGPU, Role: Memory, Unit: 1, Source: "HAMi: memory of each card asked for"},
	{Name: HAMiMemoryPercentage, Kind: VGPU, Role: Memory, Source: "HAMi: percent of each card's memory"},
	{Name: HAMiCores, Kind: VGPU, Role: Cores, Source: "HAMi: percent of each card's multiprocessors"},
	{Name: "nvidia.com/priority", Kind: VGPU, Role: Information, Source: "HAMi: 0 or 1"},

	{Name: VolcanoNumber, Kind: VGPU, Role: Devices, Source: "Volcano vGPU: cards x split"},
	{Name: VolcanoMemory, Kind: VGPU, Role: Memory, Unit: 1, Source: "Volcano vGPU: sum over the node's cards"},
	{Name: VolcanoMemoryPercentage, Kind: VGPU, Role: Memory, Source: "Volcano vGPU: percent of each card's memory"},
	{Name: VolcanoCores, Kind: VGPU, Role: Cores, Source: "Volcano vGPU: 100 for each card"},
	{Name: VolcanoShared, Kind: GPUMemory, Role: Memory, Unit: 1,
		Source: "Volcano's older plugin, --gpu-strategy=share: MiB of all cards"},
	{Name: VolcanoCards, Kind: Whole, Role: Devices,
		Source: "Volcano's older plugin, --gpu-strategy=number: cards; beside gpu-memory their number"},

	{Name: KoordinatorBoth, Kind: VGPU, Role: Cores,
		Source: "Koordinator: percent of a card, of memory and cores alike"},
	{Name: KoordinatorCores, Kind: VGPU, Role: Cores, Source: "Koordinator: 100 for each card"},
	{Name: KoordinatorMemory, Kind: VGPU, Role: Memory, Source: "Koordinator: bytes"},
	{Name: KoordinatorMemoryRatio, Kind: VGPU, Role: Memory,
		Source: "Koordinator: percent of a card's memory, 100 for each card"},
	{Name: KoordinatorShared, Kind: VGPU, Role: Devices, Shared: true, Source: "Koordinator: shares of one card each"},
}

// The errors for a name that is not a known GPU resource.
var (
	// ErrNotGPU means that nothing in the name suggests a GPU.
	ErrNotGPU = errors.New("not a GPU resource")
	// ErrForeign means the same of a name in the domain of a GPU vendor: the vendor has other devices too. It wraps
	// ErrNotGPU.
	ErrForeign = fmt.Errorf("%w, as far as the name says", ErrNotGPU)
	// ErrUnknownResource means that the name suggests a GPU but is in no table. Report it, and do not treat it as a
	// resource without GPUs.
	ErrUnknownResource = errors.New("unknown GPU resource")
)

// das begins the names of MIG instances that OpenShift's Dynamic Accelerator Slicer creates on demand.
const das = "mig.das.com/"

// DASName returns the name of a MIG instance as pods request it, for the name that OpenShift's Dynamic Accelerator
// Slicer gives it: its webhook renames nvidia.com/mig-1g.5gb in pods to mig.das.com/1g.5gb, and nodes announce the
// latter (openshift/instaslice-operator, pkg/webhook).
func DASName(name string) (requested string, isDAS bool) {
	profile, isDAS := strings.CutPrefix(name, das)
	if !isDAS {
		return "", false
	}
	return MIGPrefix + profile, true
}

// ClassPrefix begins the name by which pods request devices of any DeviceClass (k8s.io/api/resource/v1,
// ResourceDeviceClassPrefix). ClaimPrefix begins the name of a resource of which a pod with a claim of a
// ResourceClaimTemplate takes one unit. It is Heliostat's own: followed by namespace and name of the template.
const (
	ClassPrefix = "deviceclass.resource.kubernetes.io/"
	ClaimPrefix = "resourceclaimtemplates.resource.k8s.io/"
)

// ClassNamesGPU reports whether the name of a DeviceClass, or of a claim, is that of GPUs. Classes are gpu.nvidia.com,
// mig.nvidia.com, gpu.amd.com and gpu.intel.com.
func ClassNamesGPU(name string) bool {
	return strings.Contains(name, "gpu") || strings.HasPrefix(name, "mig.") || strings.HasPrefix(name, "mig-")
}

// amdPartition matches the modes of AMD's cards: compute mode, and NPS memory mode.
var amdPartition = regexp.MustCompile(`^[sdtqc]px_nps[1248]$`)

// AMDMode returns the mode of the devices behind a resource name of AMD's device plugin, such as cpx_nps4. It returns
// false for amd.com/gpu, which can be of any mode.
func AMDMode(resource string) (mode string, named bool) {
	mode, isAMD := strings.CutPrefix(resource, amd)
	return mode, isAMD && amdPartition.MatchString(mode)
}

// Names maps the names of resources to their meanings. The zero value has only the built-in names.
type Names struct {
	// Configured adds names and overrides built-in ones, because users can configure plugins to announce any name.
	Configured []Resource
}

// Resource returns the meaning of a name. The error wraps ErrNotGPU or ErrUnknownResource. For an unknown name it
// suggests the correct one if possible.
func (n Names) Resource(name string) (Resource, error) {
	for _, table := range [][]Resource{n.Configured, resources} {
		for _, resource := range table {
			if resource.Name == name && (resource.Kind == NoGPU || resource.Kind == Elsewhere) {
				return Resource{}, fmt.Errorf("%s: %w", name, ErrNotGPU)
			}
			if resource.Name == name {
				return resource, nil
			}
		}
	}
	if strings.HasPrefix(name, ClassPrefix) || strings.HasPrefix(name, ClaimPrefix) {
		return Resource{}, fmt.Errorf("%s: %w: a DeviceClass says what it is", name, ErrNotGPU)
	}
	if lower := strings.ToLower(name); lower != name {
		if _, err := n.Resource(lower); err == nil {
			return Resource{}, fmt.Errorf("%w %s: capitals make it another name, want %s", ErrUnknownResource, name,
				lower)
		}
	}
	if profile, isMIG := strings.CutPrefix(name, MIGPrefix); isMIG {
		return migResource(name, profile)
	}
	if _, isDAS := DASName(name); isDAS {
		resource, err := migResource(name, strings.TrimPrefix(name, das))
		resource.Source = "openshift/instaslice-operator, pkg/daemonset/deviceplugins: profiles that a card could have"
		return resource, err
	}
	if profile, typo := strings.CutPrefix(name, nvidia+"mig"); typo {
		// The AKS article on multi-instance GPUs has the spelling nvidia.com/mig1g.5gb, which no plugin announces.
		return Resource{}, fmt.Errorf("%w %s: a hyphen is missing, want %s%s", ErrUnknownResource, name, MIGPrefix,
			profile)
	}
	if mode, named := AMDMode(name); named {
		kind := UnknownKind
		if strings.HasPrefix(mode, "spx") {
			kind = Whole
		}
		return Resource{Name: name, Kind: kind, Role: Devices, Source: "ROCm/k8s-device-plugin, " +
			"resource_naming_strategy mixed: partitions of cards, and with spx cards that are not partitioned"}, nil
	}
	if speaksOfGPU(name) {
		return Resource{}, fmt.Errorf("%w %s: it is in no table; say what it is with --resource %s=KIND",
			ErrUnknownResource, name, name)
	}
	if isForeign(name) {
		return Resource{}, fmt.Errorf("%s: %w", name, ErrForeign)
	}
	return Resource{}, fmt.Errorf("%s: %w", name, ErrNotGPU)
}

// vendorDomains are domains of GPU vendors that announce other devices too. In gpuDomains all names are of GPUs.
var (
	vendorDomains = []string{"nvidia.com", "amd.com"}
	gpuDomains    = []string{"gpu.intel.com", "iluvatar.ai", "metax-tech.com"}
)

// networkWord matches names of network devices, which NVIDIA's network operator (resourcePrefix nvidia.com), the SR-IOV
// plugin and AMD's announce: nvidia.com/mlnxnics, hostdev, pods_vf, rdma_shared_device_a, amd.com/vnic.
var networkWord = regexp.MustCompile(`(?i)nic|hca|rdma|roce|sriov|hostdev|mlnx|mlx|connectx|bluefield|xilinx` +
	`|(^|[^a-z\d])(cx\d|bf\d|ib|eth|[vps]fs?|dpu|doca)([^a-z]|$)`)

// modelWord matches chips (GA102GL, TU104GL) and models (A100, L40S, Tesla_T4, RTX_A6000), by which the KubeVirt device
// plugin names cards. The names are those of the PCI database.
var modelWord = regexp.MustCompile(`(?i)(^|[^a-z\d])` +
	`(g[abdhkmpv]\d{2}[\da-z]*|tu\d{3}[a-z]*|[abhl]\d{1,3}s?|t4|v100s?|p4|p40|p100|m60|k80|mi\d{2,3}[a-z]?` +
	`|tesla|quadro|geforce|titan|rtx|gtx|grid)([^a-z\d]|$)`)

// speaksOfGPU reports whether the name of an extended resource suggests a GPU.
func speaksOfGPU(name string) bool {
	domain, resource, isExtended := strings.Cut(name, "/")
	lower := strings.ToLower(resource)
	switch {
	case !isExtended:
		return false
	case strings.Contains(lower, "gpu") || strings.Contains(lower, "vcuda") || slices.Contains(gpuDomains, domain):
		return true
	}
	return slices.Contains(vendorDomains, domain) && !networkWord.MatchString(resource) &&
		modelWord.MatchString(resource)
}

// isForeign reports whether a name is in the domain of a GPU vendor and names neither a GPU nor a network device.
func isForeign(name string) bool {
	domain, resource, _ := strings.Cut(name, "/")
	return slices.Contains(vendorDomains, domain) && !networkWord.MatchString(resource)
}

func migResource(name, suffix string) (Resource, error) {
	label, isShared := strings.CutSuffix(suffix, shared)
	profile, err := ParseProfile(label)
	switch {
	case err != nil || profile.Label() != label:
		return Resource{}, fmt.Errorf("%w %s: want %s<profile>, for example %s1g.10gb or %s1g.10gb.me",
			ErrUnknownResource, name, MIGPrefix, MIGPrefix, MIGPrefix)
	case profile.Compute != profile.Slices:
		profile.Compute = profile.Slices
		return Resource{}, fmt.Errorf("%w %s: only instances with all their compute slices are announced, want %s",
			ErrUnknownResource, name, ResourceName(profile, isShared))
	}
	kind := MIG
	if isShared {
		kind = TimeSliced // NVIDIA's plugin does not support MPS on MIG
	}
	return Resource{Name: name, Kind: kind, Role: Devices, Profile: profile.String(), Shared: isShared,
		Source: "NDP: mixed strategy"}, nil
}

// ResourceName returns the name under which the mixed strategy announces instances of a profile. Before release 0.20,
// the plugin used the plain name for profiles with attributes.
func ResourceName(profile ProfileName, isShared bool) string {
	name := MIGPrefix + profile.Label()
	if isShared {
		name += shared
	}
	return name
}

// Kind is how a GPU is shared.
type Kind string

// The kinds of GPUs and of shares of GPUs.
const (
	// Whole is a whole card.
	Whole Kind = "whole"
	// WholeUnproven is what a plain resource name such as nvidia.com/gpu looks like: a whole card, but nothing proves
	// that it is not a share of one. It can be used as a GPU, and guarantees no memory, compute or isolation.
	WholeUnproven Kind = "whole (unproven)"
	// MIG is a MIG instance, with its own memory and compute slices.
	MIG Kind = "mig"
	// MIGUnproven is what a plain resource name beside left-over names of MIG instances looks like: an instance of the
	// single strategy. It guarantees no more than WholeUnproven.
	MIGUnproven Kind = "mig (unproven)"
	// TimeSliced is a device that is announced several times, and whose clients take turns. There is no isolation.
	TimeSliced Kind = "time-sliced"
	// MPS is a device that is announced several times. Each client has a part of the memory and threads.
	MPS Kind = "mps"
	// GPUMemory is memory of a card, requested in units.
	GPUMemory Kind = "gpu-mem"
	// VGPU is a share from HAMi, Volcano or Koordinator: an amount of memory and of cores of a card.
	VGPU Kind = "vgpu"
	// UnknownKind is the kind if nothing shows it.
	UnknownKind Kind = "unknown"
	// NoGPU and Elsewhere are kinds that only the configuration has, for resources that are no GPUs. Nodes do not bound
	// the pods that request one of the kind Elsewhere, because an extender of the scheduler counts it.
	NoGPU     Kind = "none"
	Elsewhere Kind = "elsewhere"
)

// Isolation is what separates work on one GPU, or on a share of it, from other work.
type Isolation string

// The isolations, strongest first.
const (
	// Hardware isolates with a separate card or MIG instance: memory, bandwidth and faults are separate.
	Hardware Isolation = "hardware"
	// Limit isolates with software that limits memory or cores, as in MPS, cGPU and HAMi. A fault of one client can end
	// all clients.
	Limit Isolation = "limit"
	// NoIsolation does not isolate: each client has access to the whole card.
	NoIsolation Isolation = "none"
	// UnknownIsolation is the isolation if nothing shows it.
	UnknownIsolation Isolation = "unknown"
)

// Accelerator is a device that Ray counts as a resource of its own and not as GPU.
type Accelerator struct {
	// Resource is the name under which nodes announce it, and Ray is Ray's name of its units.
	Resource, Ray string
	// Passed says that the KubeRay operator passes a limit on to `ray start`.
	Passed bool
	// Source is the source of the row.
	Source string
}

// NeuronCores is the resource by which AWS's device plugin counts the cores of its Neuron devices.
const NeuronCores = "aws.amazon.com/neuroncore"

// accelerators are the rows for fixed names (docs/reference/facts.md#accelerators-that-are-no-gpus). Ray's names are
// those of Ray 2.60 (python/ray/_private/accelerators), and the operator's rule is that of KubeRay 1.6.2
// (customAcceleratorToRayResourceMap).
var accelerators = []Accelerator{
	{"google.com/tpu", "TPU", true, "GKE: chips; Ray: tpu.py"},
	{NeuronCores, "neuron_cores", true, "AWS Neuron device plugin: cores; Ray: neuron.py"},
	{"aws.amazon.com/neuron", "neuron_cores", false, "AWS Neuron device plugin: devices of several cores each"},
	{"aws.amazon.com/neurondevice", "neuron_cores", false, "AWS Neuron device plugin: an older name of the same"},
	{"habana.ai/gaudi", "HPU", false, "Intel Gaudi device plugin: cards; Ray: hpu.py"},
}

// ascend begins the resource names of Huawei's device plugin, such as huawei.com/Ascend910.
const ascend = "huawei.com/Ascend"

// AcceleratorOf returns the accelerator that a resource counts, and false if it counts none.
func AcceleratorOf(resource string) (Accelerator, bool) {
	for _, a := range accelerators {
		if a.Resource == resource {
			return a, true
		}
	}
	if strings.HasPrefix(resource, ascend) && !strings.HasSuffix(resource, "-memory") {
		return Accelerator{resource, "NPU", false, "Ascend device plugin: devices; Ray: npu.py"}, true
	}
	return Accelerator{}, false
}
