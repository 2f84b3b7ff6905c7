package gpuinfo

import (
	"fmt"
	"slices"
)

// Inventory is what the driver of a machine reports about its cards at one moment. A value that it does not report is
// nil, never zero.
type Inventory struct {
	// Driver is the version of the driver, for example 550.54.15.
	Driver string `json:"driver"`
	// Cards are in the order of their index. A card that the driver lost is included, with few values.
	Cards []Card `json:"cards"`
}

// Card is one physical card.
type Card struct {
	// Index is the card's number in NVML, UUID its identity (GPU-...), and Product the driver's name for it (NVIDIA
	// H100 80GB HBM3).
	Index   int    `json:"index"`
	UUID    string `json:"uuid"`
	Product string `json:"product"`
	// Memory is the total memory of the card. Used and Free are the actual use by processes, not what pods request.
	Memory *MiB `json:"memoryMiB"`
	Used   *MiB `json:"usedMiB"`
	Free   *MiB `json:"freeMiB"`
	// Cut is the MIG state of the card; nil if the card or its driver does not support MIG.
	Cut *Cut `json:"mig"`
	// Processes use the card. Processes is nil if the driver does not report them, and empty if there are none.
	Processes []Process `json:"processes"`
	// Uncorrected counts the memory errors since the last reset that ECC could not correct; nil without ECC.
	Uncorrected *uint64 `json:"uncorrectedErrors"`
	// Rows counts remapped memory rows; nil on cards before Ampere and on cards with MIG instances.
	Rows *RemappedRows `json:"remappedRows"`
	// Pages counts retired memory pages; nil on Ampere and later cards, which remap rows instead.
	Pages *RetiredPages `json:"retiredPages"`
	// Healthy is false if work must not run on the card. Problem is then the reason; otherwise it is empty.
	Healthy bool   `json:"healthy"`
	Problem string `json:"problem"`
}

// Cut is the MIG mode of a card, and its instances.
type Cut struct {
	Enabled bool `json:"enabled"`
	// Pending is the mode after the next reset of the card.
	Pending bool `json:"pendingEnabled"`
	// Instances are in the order of the memory axis. Instances is nil if the driver does not report them, for example
	// to a process without CAP_SYS_ADMIN.
	Instances []GPUInstance `json:"instances"`
}

// GPUInstance is an existing MIG GPU instance.
type GPUInstance struct {
	// ID is the driver's number of the instance. Processes refer to it.
	ID uint32 `json:"id"`
	Instance
	// Size is in units of the memory axis.
	Size int `json:"size"`
	// Compute is the number of compute instances. Without one, the instance cannot run work, and no device plugin
	// announces it.
	Compute int `json:"computeInstances"`
}

// Process is a process that uses a card.
type Process struct {
	PID uint32 `json:"pid"`
	// Kind is compute, graphics or mps.
	Kind string `json:"kind"`
	// Memory is what the process uses; nil if the driver does not report it.
	Memory *MiB `json:"memoryMiB"`
	// Instance is the ID of the GPU instance that the process runs on; nil on a whole card.
	Instance *uint32 `json:"instance"`
}

// RemappedRows counts the memory rows that spare rows replace.
type RemappedRows struct {
	Corrected   int `json:"corrected"`
	Uncorrected int `json:"uncorrected"`
	// Pending is true if the next reset remaps a row; until then, the driver runs no work on that memory. Failed is
	// true if no spare row was left; the card must be replaced.
	Pending bool `json:"pending"`
	Failed  bool `json:"failed"`
}

// RetiredPages counts the memory pages that the driver no longer uses.
type RetiredPages struct {
	// SingleBit counts pages retired after several errors that ECC corrected. DoubleBit counts pages retired after one
	// error that ECC could not correct.
	SingleBit int `json:"singleBit"`
	DoubleBit int `json:"doubleBit"`
	// Pending is true if the driver retires a page when it loads again.
	Pending bool `json:"pending"`
}

// Layout returns the instances of a card in the form that placement uses.
func (c Cut) Layout() []Instance {
	layout := make([]Instance, len(c.Instances))
	for i, instance := range c.Instances {
		layout[i] = instance.Instance
	}
	slices.SortFunc(layout, byStart)
	return layout
}

// XID describes one error number of NVIDIA's driver.
type XID struct {
	Number uint64
	// Meaning is a short description; empty if only the verdict is known.
	Meaning string
	// Fatal is true if Source lists the XID among those after which the card must not be used.
	Fatal bool
	// Source is the origin of the verdict.
	Source string
}

// The sources of verdicts. If they differ, NVIDIA's verdict applies. Meanings are from the same lists unless noted;
// most lists have none.
const (
	pluginIgnores = "NVIDIA device plugin, health checks: an error of the application, after which the card is healthy"
	eksFatal      = "EKS node monitoring agent, list of fatal XIDs"
	remappedRows  = "NVML, nvmlDeviceGetRemappedRows: a pending remapping does not affect future work on the GPU"
	unlisted      = "neither in the EKS node monitoring agent's list of fatal XIDs nor ignored by the device plugin: " +
		"logged; the card stays as it is"
)

// xids are the XIDs with a documented verdict. An XID without a row is not reported as fatal. The device plugin treats
// almost every XID as fatal and then withdraws the card, so allocatable is below capacity.
var xids = []XID{
	{13, "graphics engine exception", false, pluginIgnores}, // meaning: NVIDIA's Xid catalog
	{31, "", false, pluginIgnores},
	{43, "", false, pluginIgnores},
	{45, "", false, pluginIgnores},
	{46, "the card stopped processing", true, eksFatal}, // meaning: NVIDIA's Health Validation, Xid checks
	{48, "double-bit memory error", true, eksFatal},
	{54, "", true, eksFatal},
	{62, "", true, eksFatal},
	// EKS lists 63 as fatal, and NVIDIA does not. NVML's manual says that the reset can wait.
	{63, "a memory row is to be replaced", false, remappedRows},
	{64, "a memory row or page could not be replaced", true, eksFatal},
	{68, "", false, pluginIgnores},
	{74, "NVLink error", true, eksFatal},
	{79, "the card has fallen off the bus", true, eksFatal},
	{94, "contained memory error", false, unlisted},
	{95, "uncontained memory error", true, eksFatal},
	// EKS lists 109 as fatal.
	{109, "", false, pluginIgnores},
	{110, "", true, eksFatal},
	{119, "the GPU system processor does not answer", true, eksFatal},
	{120, "error of the GPU system processor", true, eksFatal},
	{136, "", true, eksFatal},
	{140, "unrecovered memory error", true, eksFatal},
	{142, "", true, eksFatal},
	{143, "", true, eksFatal},
	{151, "", true, eksFatal},
	{154, "carries the recommended recovery action", false, unlisted},
	{155, "", true, eksFatal},
	{156, "", true, eksFatal},
	{158, "", true, eksFatal},
}

// XIDOf returns the XID with this number, and false if no source has a verdict for it.
func XIDOf(number uint64) (XID, bool) {
	for _, x := range xids {
		if x.Number == number {
			return x, true
		}
	}
	return XID{Number: number}, false
}

// XIDEvent is an XID that the driver reported.
type XIDEvent struct {
	XID
	// Card is the index of the card; nil if the driver does not report it.
	Card *int
	// Instance is the ID of the GPU instance in which the XID occurred; nil on a whole card.
	Instance *uint32
}

// String returns text such as "XID 79: the card has fallen off the bus".
func (e XIDEvent) String() string {
	text := fmt.Sprintf("XID %d", e.Number)
	if e.Instance != nil {
		text += fmt.Sprintf(" in GPU instance %d", *e.Instance)
	}
	switch {
	case e.Meaning != "":
		return text + ": " + e.Meaning
	case e.Fatal:
		return text + ": fatal"
	}
	return text
}
