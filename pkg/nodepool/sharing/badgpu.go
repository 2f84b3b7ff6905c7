package sharing

import (
	"fmt"
	"slices"
	"strings"
)

// Severity says what follows from a sign of a bad GPU. Each includes the ones before it.
type Severity int

// The severities.
const (
	// Watch: it is shown.
	Watch Severity = iota + 1
	// Avoid: plans place nothing new there.
	Avoid
	// Drain: workers that have the GPU are drained once the sign has lasted.
	Drain
	// Replace: they are drained at once, because work there cannot continue.
	Replace
)

func (s Severity) String() string {
	return [...]string{"", "watch", "avoid", "drain", "replace"}[s]
}

// The kinds of signs of a bad GPU.
const (
	conditionSign = "condition"
	taintSign     = "taint"
	labelSign     = "label"
	cardSign      = "card"
)

// BadGPUSign is one row of BadGPUSigns.
type BadGPUSign struct {
	// Kind is condition, taint, label or card. A card's Name is how its problem begins.
	Kind, Name string
	// Bad is the status or value that shows it; empty for taints, which may have any, and cards.
	Bad      string
	Severity Severity
	Source   string
}

const (
	aks        = "AKS node-problem-detector"
	ack        = "ACK node-problem-detector"
	tke        = "TKE node-problem-detector"
	eks        = "EKS node monitoring agent; EKS and Karpenter repair the node after 10 minutes"
	eksSystem  = "EKS node monitoring agent; EKS and Karpenter repair the node after 30 minutes"
	sentinel   = "NVSentinel, Integration Guide: only fatal errors set conditions"
	sentinelUp = "NVSentinel, Integration Guide: examples of taints in its rules"
	sentinelAt = "NVSentinel, commons/pkg/statemanager"
	draDriver  = "DRA driver of NVIDIA, device taints; one without an effect counts as none"
)

// BadGPUSigns are the signs of bad GPUs, the surest of each kind first. What a cloud or Karpenter does to a machine
// that it repairs, such as taints and deletions, is in package departure: the machine goes.
// docs/reference/bad-gpus.md shows the table.
var BadGPUSigns = []BadGPUSign{
	{conditionSign, "GPUMissing", "True", Drain, aks},
	{conditionSign, "NVLinkStatusInactive", "True", Drain, aks},
	{conditionSign, "XIDErrors", "True", Drain, aks},
	{conditionSign, "GPUXIDErrors", "True", Drain, aks + ", in its documentation"},
	{conditionSign, "UnhealthyNvidiaDevicePlugin", "True", Avoid, aks},
	{conditionSign, "UnhealthyNvidiaDCGMServices", "True", Watch, aks},
	{conditionSign, "GPUClockThrottling", "True", Watch, aks},
	{conditionSign, "IBLinkFlapping", "True", Watch, aks},
	{conditionSign, "AcceleratedHardwareReady", "False", Drain, eks},
	{conditionSign, "KernelReady", "False", Watch, eksSystem},
	{conditionSign, "StorageReady", "False", Watch, eksSystem},
	{conditionSign, "NetworkingReady", "False", Watch, eksSystem},
	{conditionSign, "ContainerRuntimeReady", "False", Watch, eksSystem},
	{conditionSign, "NvidiaXidError", "True", Drain, ack},
	{conditionSign, "GPUDeviceLost", "True", Replace, tke},
	{conditionSign, "GPUDoubleBitEccError", "True", Drain, tke},
	{conditionSign, "GPUNvlinkError", "True", Drain, tke},
	{conditionSign, "GPUPCIeError", "True", Drain, tke},
	{conditionSign, "GPUXIDFatalError", "True", Drain, tke},
	{conditionSign, "GPUXIDWarningError", "True", Watch, tke},
	{conditionSign, "SysLogsGPUFallenOff", "True", Replace, sentinel},
	{conditionSign, "SysLogsXIDError", "True", Drain, sentinel},
	{conditionSign, "SysLogsSXIDError", "True", Drain, sentinel},
	{conditionSign, "GpuMemWatch", "True", Drain, sentinel},
	{conditionSign, "GpuNvlinkWatch", "True", Drain, sentinel},
	{conditionSign, "GpuPcieWatch", "True", Drain, sentinel},
	{conditionSign, "GpuThermalWatch", "True", Drain, sentinel},
	{conditionSign, "GpuPowerWatch", "True", Drain, sentinel},
	{conditionSign, "GpuInforomWatch", "True", Drain, sentinel},
	{conditionSign, "GpuSmWatch", "True", Drain, sentinel},
	{conditionSign, "GpuMcuWatch", "True", Drain, sentinel},
	{conditionSign, "GpuPmuWatch", "True", Drain, sentinel},
	{conditionSign, "GpuDriverWatch", "True", Drain, sentinel},
	{conditionSign, "NVSwitchFatalError", "True", Drain, sentinel},
	{conditionSign, "NVSwitchDown", "True", Drain, sentinel},
	{conditionSign, "DCGMError", "True", Avoid, sentinel + "; DCGM does not answer, so nobody watches the GPUs"},

	{taintSign, "nvidia.com/gpu-xid-error", "", Drain, sentinelUp},
	{taintSign, "nvidia.com/gpu-nvlink-error", "", Drain, sentinelUp},
	{taintSign, "nvidia.com/syslog-xid-error", "", Drain, sentinelUp},
	{taintSign, "nvidia.com/gpu-error", "", Drain, sentinelUp},

	{labelSign, sentinelState, "draining", Drain, sentinelAt + ": its request to drain"},
	{labelSign, sentinelState, "quarantined", Avoid, sentinelAt},
	{labelSign, sentinelState, "drain-succeeded", Avoid, sentinelAt},
	{labelSign, sentinelState, "drain-failed", Avoid, sentinelAt},
	{labelSign, sentinelState, "remediating", Avoid, sentinelAt},
	{labelSign, sentinelState, "remediation-failed", Avoid, sentinelAt},

	{cardSign, "XID 79", "", Replace, "Heliostat's agent, XIDs; the card has fallen off the bus"},
	{cardSign, "the card has fallen off the bus", "", Replace, "Heliostat's agent, NVML: GPU_IS_LOST"},
	{cardSign, "gpu.nvidia.com/gpu-lost", "", Replace, draDriver},
	{cardSign, "gpu.nvidia.com/xid", "", Drain, draDriver},
	{cardSign, "XID", "", Drain, "Heliostat's agent, the fatal XIDs of gpus.md"},
	{cardSign, "a memory row could not be remapped", "", Drain, "Heliostat's agent, NVML: row remapper"},
	{cardSign, "the card must be reset", "", Drain, "Heliostat's agent, NVML: RESET_REQUIRED"},
	{cardSign, "the driver", "", Drain, "Heliostat's agent, NVML: the card does not answer"},
	{cardSign, "its agent reports it as unhealthy", "", Drain, "register of HAMi or Volcano"},
}

const sentinelState = "dgxc.nvidia.com/nvsentinel-state"

// BadGPU is a sign that one GPU or all GPUs of a node are bad.
type BadGPU struct {
	Severity Severity
	// Cause is what shows it: "XID 79: the card has fallen off the bus", "condition XIDErrors is True". Says is what
	// the condition says besides; it may change while the sign stays.
	Cause, Says string
	// GPU names the card in texts: GPU-3. UUID and Device identify it, as far as they are known; Device is its name in
	// ResourceSlices.
	GPU, UUID, Device string
	// Some: it is one of the cards, known or not. Otherwise it is about all of them.
	Some bool
}

// DevicePrefix begins the names of cards in ResourceSlices (gpu-3) and of instances on them (gpu-3-mig-1g5gb-19-0).
const DevicePrefix = "gpu-"

// WholeNode reports whether the sign is about all GPUs of the node.
func (f BadGPU) WholeNode() bool { return !f.Some }

// Key identifies the sign among those of a node.
func (f BadGPU) Key() string { return f.Cause + "\x00" + f.GPU + f.UUID }

// Text names the cause and the node: "XID 79: the card has fallen off the bus, on GPU-3 of node n7".
func (f BadGPU) Text(node string) string {
	text := f.Cause
	if f.GPU != "" {
		text += ", on " + f.GPU + " of node " + node
	} else {
		text += ", on node " + node
	}
	if f.Says != "" {
		text += ": " + f.Says
	}
	return text
}

// Is reports whether a device is the card, or on it: its UUID with or without a suffix for a share, or driver, pool and
// name of a device in ResourceSlices.
func (f BadGPU) Is(id string) bool {
	name := id[strings.LastIndex(id, "/")+1:]
	return f.UUID != "" && strings.HasPrefix(id, f.UUID) ||
		f.Device != "" && name != id && (name == f.Device || strings.HasPrefix(name, f.Device+"-"))
}

// IsGPUCondition reports whether a node condition of this type is about GPUs.
func IsGPUCondition(name string) bool { return isSign(conditionSign, name) }

// OfBadGPU reports whether the taint is a sign that GPUs of the node are bad.
func (t Taint) OfBadGPU() bool { return isSign(taintSign, t.Key) }

func isSign(kind, name string) bool {
	return slices.ContainsFunc(BadGPUSigns, func(row BadGPUSign) bool { return row.Kind == kind && row.Name == name })
}

// readBadGPUs finds the signs that GPUs of the node are bad.
func (r *reading) readBadGPUs() {
	for _, row := range BadGPUSigns {
		switch {
		case row.Kind == conditionSign && r.node.Conditions[row.Name] == row.Bad:
			r.badGPU(BadGPU{Severity: row.Severity, Cause: "condition " + row.Name + " is " + row.Bad,
				Says: r.node.Messages[row.Name]})
		case row.Kind == labelSign && r.node.Labels[row.Name] == row.Bad:
			r.badGPU(BadGPU{Severity: row.Severity, Cause: "label " + row.Name + "=" + row.Bad})
		case row.Kind == taintSign:
			for _, taint := range r.node.Taints {
				if taint.Key == row.Name {
					r.badGPU(BadGPU{Severity: row.Severity, Cause: "taint " + taint.String()})
				}
			}
		}
	}
	for i := range r.gpus.PerCard {
		r.badCard(&r.gpus.PerCard[i])
	}
	for _, name := range r.announced() {
		// With 0, the device plugin is not running, which says nothing about the cards.
		if capacity, healthy := r.node.Capacity[name], r.node.Allocatable[name]; healthy > 0 && healthy < capacity {
			r.badGPU(BadGPU{Severity: Drain, Some: true, Cause: "unhealthy " + name,
				Says: fmt.Sprintf("%d of %d", capacity-healthy, capacity)})
		}
	}
}

func (r *reading) badGPU(f BadGPU) { r.gpus.Bad = append(r.gpus.Bad, f) }

// badCard adds what is wrong with a card. What is in no row keeps new pods away, such as a card that somebody
// cordoned.
func (r *reading) badCard(card *Card) {
	f := BadGPU{Severity: Avoid, Cause: card.Problem, Some: true}
	switch {
	case card.Problem == "":
		return
	case card.Usable():
		f.Severity = Watch
	default:
		for _, row := range BadGPUSigns {
			if row.Kind == cardSign && strings.HasPrefix(card.Problem, row.Name) {
				f.Severity = row.Severity
				break
			}
		}
	}
	if card.UUID != nil {
		f.GPU, f.UUID = *card.UUID, *card.UUID
	}
	if card.Index != nil {
		f.GPU = fmt.Sprintf("GPU-%d", *card.Index)
		if card.Source == "dra" {
			f.Device = fmt.Sprintf("%s%d", DevicePrefix, *card.Index)
		}
	}
	r.badGPU(f)
}

// AllBad returns why no GPU of the node is to be used; empty if some are.
func (n *GPUs) AllBad() string {
	for _, f := range n.Bad {
		if f.Severity >= Avoid && f.WholeNode() {
			return f.Cause
		}
	}
	return ""
}
