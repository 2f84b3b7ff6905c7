package sharing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Problem is a fault of a node's GPUs, or of what the node reports about them. As text it is "code: message".
type Problem struct {
	Code    ProblemCode
	Message string
	// Annotation is the one that is invalid; empty if the problem is in labels or resources, or in no single one.
	Annotation string
}

// MarshalText returns the code, a colon and the message.
func (p Problem) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// ByHAMi reports whether the problem is a register that HAMi's scheduler cannot read either.
func (p Problem) ByHAMi() bool {
	return p.Code == RegisterUnreadable && p.Annotation != volcanoRegister
}

func (p Problem) String() string { return string(p.Code) + ": " + p.Message }

// ProblemCode names a problem for programs; it is stable.
type ProblemCode string

// The problems.
const (
	// Cordoned: no pod is scheduled there.
	Cordoned ProblemCode = "cordoned"
	// NotReady: the node's condition Ready is not True, so no pod is scheduled there.
	NotReady ProblemCode = "not-ready"
	// DevicesMissing: fewer devices are allocatable than the node has.
	DevicesMissing ProblemCode = "devices-missing"
	// NothingAnnounced: there are GPUs, but no resource for them.
	NothingAnnounced ProblemCode = "nothing-announced"
	// NoDevicePlugin: the GPU operator or GKE runs no device plugin there; Dynamic Resource Allocation may allocate the
	// GPUs.
	NoDevicePlugin ProblemCode = "no-device-plugin"
	// MIGChanging: the MIG layout is changing, or a change failed.
	MIGChanging ProblemCode = "mig-changing"
	// MIGInvalid: under the single strategy the cards have no common profile.
	MIGInvalid ProblemCode = "mig-invalid"
	// ProfileMismatch: labels and resource name different profiles. ProfileUnknown: the product has no such profile.
	ProfileMismatch ProblemCode = "profile-mismatch"
	ProfileUnknown  ProblemCode = "profile-unknown"
	// TooManyUnits: more is announced than the cards can have.
	TooManyUnits ProblemCode = "too-many-units"
	// SharingUnlabelled: more units than cards are announced, and no label says how the cards are shared.
	SharingUnlabelled ProblemCode = "sharing-unlabelled"
	// MemoryOvercommitted: more memory is registered than the cards have. MemoryMissing: a memory resource is announced
	// with amount 0.
	MemoryOvercommitted ProblemCode = "memory-overcommitted"
	MemoryMissing       ProblemCode = "memory-missing"
	// MemoryBelowProduct: labels show far less memory than a card of the product has, so a unit is a part of a card.
	MemoryBelowProduct ProblemCode = "memory-below-product"
	// UnitUnknown: what is announced of memory is neither that of the cards nor a whole part of it.
	UnitUnknown ProblemCode = "memory-unit-unknown"
	// RegisterUnreadable: what the agent of HAMi or Volcano registers about the cards is invalid or names none. HAMi's
	// scheduler takes no cards from it.
	RegisterUnreadable ProblemCode = "register-unreadable"
	// RegisterContradicted: HAMi registers other shares than the node announces, so two agents use one name.
	RegisterContradicted ProblemCode = "register-contradicted"
	// SharesUncounted: shares of cards are announced, and how many pods a card holds is unknown.
	SharesUncounted ProblemCode = "shares-uncounted"
	// CardUnrecorded: a pod uses part of a card, and no annotation says of which one.
	CardUnrecorded ProblemCode = "card-unrecorded"
	// AgentSilent: the node's sharing agent does not respond. AgentOutdated: the report of Heliostat's agent is
	// outdated. DeviceUnhealthy: an agent or driver reports a card as unhealthy.
	AgentSilent     ProblemCode = "agent-silent"
	AgentOutdated   ProblemCode = "agent-outdated"
	DeviceUnhealthy ProblemCode = "device-unhealthy"
	// DeviceCordoned: an operator keeps new pods from a card.
	DeviceCordoned ProblemCode = "device-cordoned"
	// ForVirtualMachines: the GPU operator gives the node's cards to virtual machines.
	ForVirtualMachines ProblemCode = "for-virtual-machines"
	// ConditionBad: a node condition about GPUs reports a problem.
	ConditionBad ProblemCode = "condition-bad"
	// GPUBad: a taint or a label of the node says that its GPUs are bad. GPUWatch: there is a sign of a bad GPU that
	// drains no worker.
	GPUBad   ProblemCode = "gpu-bad"
	GPUWatch ProblemCode = "gpu-watch"
	// AmountsAlternative: the node announces what its cards could be cut into, one way or another.
	AmountsAlternative ProblemCode = "amounts-alternative"
	// NamesContradict: names of resources, or names and labels, say different things of the same cards.
	NamesContradict ProblemCode = "names-contradict"
	// LabelUnreadable: a label or annotation has an invalid value.
	LabelUnreadable ProblemCode = "label-unreadable"
	// AmountUnreadable: a node cannot have this amount of a resource.
	AmountUnreadable ProblemCode = "amount-unreadable"
	// ResourceNotKnown: a resource looks like GPUs and is in no table. ResourceForeign: it is of a GPU vendor's domain,
	// and its name does not say what it is.
	ResourceNotKnown ProblemCode = "resource-not-known"
	ResourceForeign  ProblemCode = "resource-foreign"
)

// readProblems finds the problems that do not depend on how the GPUs are shared.
func (r *reading) readProblems() {
	if r.node.Unschedulable {
		r.problem(Cordoned, "spec.unschedulable is set")
	}
	for _, f := range r.gpus.Bad {
		r.badProblem(f)
	}
	r.oddValues()
	if profile, all := strings.CutPrefix(r.label(labelConfig), "all-"); all {
		r.unknownProfile(labelConfig, profile)
	}
	r.missingDevices()
	r.nothingAnnounced()
	r.tooManyUnits()
	if ready := r.node.Conditions["Ready"]; ready != "" && ready != "True" {
		r.problem(NotReady, "Ready is "+ready)
	}
}

// badProblem reports a sign of a bad GPU, unless it is one that is reported where the card or the resource is read.
func (r *reading) badProblem(f BadGPU) {
	text := f.Cause
	if f.GPU != "" {
		text += ", on " + f.GPU
	}
	switch condition, isCondition := strings.CutPrefix(f.Cause, conditionSign+" "); {
	case f.Severity == Watch, f.Device != "" && f.Severity == Avoid:
		r.problem(GPUWatch, text)
	case isCondition:
		r.problem(ConditionBad, condition)
	case f.Device != "":
		r.problem(DeviceUnhealthy, "the driver taints "+f.GPU+": "+f.Cause)
	case f.WholeNode():
		r.problem(GPUBad, text)
	}
}

// missingDevices compares allocatable, which counts healthy devices, with capacity. A resource that is no longer
// announced keeps its old capacity and has allocatable 0 beside the new resource, or beside devices of Dynamic Resource
// Allocation. That is not a fault.
func (r *reading) missingDevices() {
	if r.node.Allocatable == nil || r.node.Capacity == nil {
		return
	}
	for _, name := range r.announced() {
		capacity, allocatable := r.node.Capacity[name], r.node.Allocatable[name]
		switch {
		case allocatable >= capacity || allocatable == 0 && (r.othersAnnounced(name) || len(r.node.Devices) > 0):
		case r.gpus.Kind == gpuinfo.MPS && allocatable == 0:
			r.problem(DevicesMissing,
				fmt.Sprintf("%s: allocatable 0 of capacity %d: the MPS control daemon is not serving yet", name,
					capacity))
		case allocatable == 0:
			r.problem(DevicesMissing,
				fmt.Sprintf("%s: allocatable 0 of capacity %d: the device plugin is not running, or all are unhealthy",
					name, capacity))
		default:
			r.problem(DevicesMissing, fmt.Sprintf("%s: allocatable %d of capacity %d: the others are unhealthy", name,
				allocatable, capacity))
		}
	}
}

func (r *reading) othersAnnounced(name string) bool {
	return someOf(r.devices, func(other string, _ int64) bool {
		return other != name && r.node.Allocatable[other] > 0
	})
}

// tooManyUnits compares the announced units with what the cards can have: stale resources remain after repartitioning.
func (r *reading) tooManyUnits() {
	if r.gpus.Cards == nil || !r.productKnown || r.gpus.Kind != gpuinfo.MIG || r.gpus.Isolation != gpuinfo.Hardware ||
		r.gpus.Profile != nil || r.gpus.slicedOnDemand() {
		return // a card can have any number of shares
	}
	instances := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(r.gpus.Units)) {
		if resource, err := r.names.Resource(name); err == nil && resource.Profile != "" {
			instances[resource.Profile] = int(r.gpus.Units[name])
		}
	}
	cut, err := r.product.LeastCards(instances)
	if err != nil {
		return // an unknown profile is reported where it is read
	}
	whole := r.gpus.Units[gpuinfo.NvidiaGPU]
	if whole+int64(cut) > *r.gpus.Cards {
		r.problem(TooManyUnits, fmt.Sprintf("%s %d and instances for at least %d cards are announced on %d cards",
			gpuinfo.NvidiaGPU, whole, cut, *r.gpus.Cards))
		r.gpus.Isolation = gpuinfo.UnknownIsolation // it is unknown which of them exist
	}
}

// oddValues reports invalid labels.
func (r *reading) oddValues() {
	for _, label := range oddLabels {
		if value := r.label(label.key); value != "" && !slices.Contains(label.want, value) {
			last := len(label.want) - 1
			r.problem(LabelUnreadable, fmt.Sprintf("%s=%s: want %s or %s", label.key, value,
				strings.Join(label.want[:last], ", "), label.want[last]))
		}
	}
}

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
	explained := slices.ContainsFunc(r.gpus.Problems, func(p Problem) bool {
		return p.Code != ResourceForeign && p.Code != GPUWatch
	})
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
