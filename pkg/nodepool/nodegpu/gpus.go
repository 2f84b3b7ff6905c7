package nodegpu

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func (n GPUs) HasNVIDIA() bool {
	for name, units := range n.Units {
		shared := strings.HasPrefix(name, "nvidia.com/") || strings.HasPrefix(name, "aliyun.com/") ||
			strings.HasPrefix(name, "volcano.sh/")
		if units > 0 && shared {
			return true
		}
	}
	return false
}

// ill counts the cards that are known not to be well.
func (n *GPUs) ill() int64 {
	var ill int64
	for _, card := range n.PerCard {
		if !card.usable() {
			ill++
		}
	}
	return ill
}

// WellCards is how many of the node's cards take work; nil where their number is not known.
func (n *GPUs) WellCards() *int64 {
	if n.Cards == nil {
		return nil
	}
	well := max(*n.Cards-n.ill(), 0)
	return &well
}

// LargestCard is what the largest card of a node could give of a memory resource.
func (n GPUs) LargestCard(resource string) (units int64, known bool) {
	if perCard, ok := n.UnitsPerCard[resource]; ok {
		return perCard, true
	}
	if resource == gpuinfo.AliyunMemory {
		return 0, false
	}
	for _, card := range n.PerCard {
		if card.MemoryMiB == nil {
			return 0, false
		}
		units, known = max(units, *card.MemoryMiB), true
	}
	return units, known
}

// Announces reports whether the node may have units of a resource. One whose units are not known may.
func (n GPUs) Announces(resource string) bool { return n.Units == nil || n.Units[resource] > 0 }

// WithUse fills in which instances of a card are in use where the node's units tell: of a profile of which all are
// free, or none is.
func (n GPUs) WithUse(c Card) Card {
	c.Instances = slices.Clone(c.Instances)
	for i := range c.Instances {
		instance := &c.Instances[i]
		name, err := gpuinfo.ParseProfile(instance.Profile)
		if instance.Free != nil || err != nil {
			continue
		}
		resource := gpuinfo.ResourceName(name, false)
		if n.Profile != nil {
			resource = gpuinfo.NvidiaGPU
		}
		if free, told := n.Free[resource]; told && (free == 0 || free == n.Units[resource]) {
			all := free > 0
			instance.Free = &all
		}
	}
	return c
}

// GPUs is what is understood of a node's GPUs. What the node cannot prove is left out (nil, or kind and isolation
// unknown): nothing is better than a wrong number.
type GPUs struct {
	Name string  `json:"name"`
	Pool *string `json:"pool"`
	// Product is the model as the node names it, without what feature discovery appends for slices and shares.
	Product *string `json:"product"`
	// Cards are physical cards.
	Cards *int64       `json:"cards"`
	Kind  gpuinfo.Kind `json:"kind"`
	// Units are what pods can ask for, by resource, zeros too.
	Units map[string]int64 `json:"units"`
	// MemoryMiB is the memory behind one unit, only of resources where something stands for it.
	MemoryMiB map[string]int64 `json:"memoryMiB"`
	// UnitsPerCard is set for memory that is handed out in units: a request must fit one card.
	UnitsPerCard map[string]int64  `json:"unitsPerCard"`
	Isolation    gpuinfo.Isolation `json:"isolation"`
	// CardMemoryMiB is the memory of one physical card.
	CardMemoryMiB *int64 `json:"cardMemoryMiB"`
	// Profile is the MIG profile behind a plain resource name, Replicas how many share one device.
	Profile  *string `json:"profile"`
	Replicas *int64  `json:"replicas"`
	// Free counts the units that no pod on the node asks for, by resource; nil while pods are not known.
	Free map[string]int64 `json:"free"`
	// WellUnits is what the cards that are well give of a resource, where that is less than its Units; nil while no
	// card is known to be ill.
	WellUnits map[string]int64 `json:"wellUnits"`
	// PerCard is what is known of single cards; nil where nothing is.
	PerCard  []Card    `json:"perCard"`
	Problems []Problem `json:"problems"`
}
