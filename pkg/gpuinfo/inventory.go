package gpuinfo

import "slices"

// Inventory is what the driver of a machine says of its cards at one moment. What it does not tell is nil, never zero.
type Inventory struct {
	// Driver is its version: 550.54.15.
	Driver string `json:"driver"`
	// Cards are in the order of their index; one that the driver lost is there too, with little known of it.
	Cards []Card `json:"cards"`
}

// Card is one physical card.
type Card struct {
	// Index is the card's number in NVML, UUID its identity (GPU-...), Product the driver's name of it (NVIDIA H100
	// 80GB HBM3).
	Index   int    `json:"index"`
	UUID    string `json:"uuid"`
	Product string `json:"product"`
	// Memory of the card; Used and Free say what processes hold now, which is not what is promised to pods.
	Memory *MiB `json:"memoryMiB"`
	Used   *MiB `json:"usedMiB"`
	Free   *MiB `json:"freeMiB"`
	// Cut is how MIG cuts the card; nil where the card or its driver has no MIG.
	Cut *Cut `json:"mig"`
	// Processes use the card; nil where the driver does not tell, an empty list where there are none.
	Processes []Process `json:"processes"`
	// Uncorrected counts memory errors since the last reset that ECC could not correct; nil without ECC.
	Uncorrected *uint64 `json:"uncorrectedErrors"`
	// Rows are remapped memory rows; nil before Ampere, and of a card with MIG instances.
	Rows *RemappedRows `json:"remappedRows"`
	// Pages are retired memory pages; nil from Ampere on, where rows are remapped instead.
	Pages *RetiredPages `json:"retiredPages"`
	// Healthy is false when work must not go there; Problem then says why, else it is empty.
	Healthy bool   `json:"healthy"`
	Problem string `json:"problem"`
}

// Cut is the MIG mode of a card and its instances.
type Cut struct {
	Enabled bool `json:"enabled"`
	// Pending is the mode after the next reset of the card.
	Pending bool `json:"pendingEnabled"`
	// Instances are in the order of the memory axis; nil where the driver does not tell, as to a process without
	// CAP_SYS_ADMIN.
	Instances []GPUInstance `json:"instances"`
}

// GPUInstance is a MIG GPU instance that exists.
type GPUInstance struct {
	// ID is the driver's number of the instance, which processes carry.
	ID uint32 `json:"id"`
	Instance
	// Size in units of the memory axis.
	Size int `json:"size"`
	// Compute counts its compute instances. Without one, nothing can run there and no device plugin announces it.
	Compute int `json:"computeInstances"`
}

// Process uses a card.
type Process struct {
	PID uint32 `json:"pid"`
	// Kind is compute, graphics or mps.
	Kind string `json:"kind"`
	// Memory that it holds; nil where the driver does not tell.
	Memory *MiB `json:"memoryMiB"`
	// Instance is the ID of the GPU instance it runs on; nil on a whole card.
	Instance *uint32 `json:"instance"`
}

// RemappedRows are memory rows that were replaced by spare ones.
type RemappedRows struct {
	Corrected   int `json:"corrected"`
	Uncorrected int `json:"uncorrected"`
	// Pending: a row is remapped at the next reset; until then the driver keeps work off it. Failed: there was no spare
	// row left, and the card is to be replaced.
	Pending bool `json:"pending"`
	Failed  bool `json:"failed"`
}

// RetiredPages are pages of memory that the driver uses no more.
type RetiredPages struct {
	// SingleBit counts those retired after several errors that ECC corrected, DoubleBit those after one that it could
	// not.
	SingleBit int `json:"singleBit"`
	DoubleBit int `json:"doubleBit"`
	// Pending: a page is retired when the driver is loaded again.
	Pending bool `json:"pending"`
}

// Layout are the instances of a card as placement takes them.
func (c Cut) Layout() []Instance {
	layout := make([]Instance, len(c.Instances))
	for i, instance := range c.Instances {
		layout[i] = instance.Instance
	}
	slices.SortFunc(layout, byStart)
	return layout
}
