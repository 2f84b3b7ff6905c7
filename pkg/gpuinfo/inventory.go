package gpuinfo

import "slices"

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
	// ID is the driver's number of the instance. XIDs refer to it.
	ID uint32 `json:"id"`
	Instance
	// Size is in units of the memory axis.
	Size int `json:"size"`
	// Compute is the number of compute instances. Without one, the instance cannot run work, and no device plugin
	// announces it.
	Compute int `json:"computeInstances"`
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
