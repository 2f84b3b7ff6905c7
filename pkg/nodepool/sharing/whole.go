package sharing

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// wholeCards describes whole cards. The API does not show which cards a device plugin assigned, only how many are left.
func (r *reading) wholeCards() []Card {
	name, others := r.cardUnits()
	units, free := r.gpus.Units[name], r.gpus.Free[name]
	if r.gpus.Kind != gpuinfo.Whole || others || units <= 0 || units > mostCards || r.gpus.Free == nil ||
		r.gpus.Cards != nil && *r.gpus.Cards < units {
		return nil
	}
	cards := make([]Card, units)
	for i := range cards {
		left, memory := int64(0), int64(0)
		if int64(i) < free {
			left = 1
		}
		cards[i] = Card{FreeUnits: &left, MemoryMiB: r.gpus.CardMemoryMiB, Source: "pods"}
		if r.gpus.CardMemoryMiB != nil {
			memory = *r.gpus.CardMemoryMiB * left
			cards[i].FreeMiB = &memory
		}
	}
	return cards
}

// readWhole recognizes cards by what is missing: any mark of sharing or partitions. That they are whole is a fact only
// if labels say so, or if there are as many units as cards: device plugins that share cards need no labels
// (docs/reference/facts.md#units-without-labels). Names that end in .shared show sharing, but not which kind.
func (r *reading) readWhole() bool {
	units, others := r.cardUnits()
	replicas, counted := r.number(labelReplicas)
	switch {
	case others || units == "" && r.gpus.Units != nil && len(r.announced()) > 0:
		return false
	case units == "" && r.unknown:
		return false // the resource has an unknown name
	case units == "" && r.label(LabelProduct) == "" && r.label(LabelGKEAccelerator) == "":
		return false
	case counted && replicas == 0 && r.label(labelStrategy) == strategyMixed:
		return false // all cards are in MIG mode
	case strings.HasSuffix(r.label(LabelProduct), "-SHARED"):
		return false // by time-slicing or by MPS
	case r.leftOverInstances() && !r.labelledWhole():
		return r.is(gpuinfo.MIGUnproven, gpuinfo.UnknownIsolation)
	case units != "" && r.moreThanCards(units):
		return false
	}
	units = cmp.Or(units, gpuinfo.NvidiaGPU)
	if cards, _, known := r.cardCount(); known {
		r.cards(cards)
	}
	if !r.provenWhole(units) {
		return r.is(gpuinfo.WholeUnproven, gpuinfo.UnknownIsolation)
	}
	// One unit is one card, unless another plugin hands out cards too.
	if r.gpus.Cards == nil && r.devices[units] == 1 && len(r.gpus.Units) == 1 {
		r.cards(1)
	}
	r.wholeMemory(units)
	return r.is(gpuinfo.Whole, gpuinfo.Hardware)
}

// cardUnits returns the resource under which cards can be announced, and whether there are devices under names that are
// not for cards.
func (r *reading) cardUnits() (name string, others bool) {
	for _, device := range r.announced() {
		resource, err := r.names.Resource(device)
		if err != nil || resource.Shared || resource.Profile != "" ||
			resource.Kind != gpuinfo.UnknownKind && resource.Kind != gpuinfo.Whole {
			others = true
			continue
		}
		name = device
	}
	return name, others
}

// provenWhole reports whether each unit of a resource is known to be a whole card: by its name, which no plugin uses
// for shares, by labels, or because there are as many units as cards.
func (r *reading) provenWhole(units string) bool {
	resource, err := r.names.Resource(units)
	switch {
	case err == nil && resource.Kind == gpuinfo.Whole:
		return true
	case strings.HasPrefix(units, "microsoft.com/"):
		return false // the DirectX plugin can give one card to many pods
	case units == gpuinfo.NvidiaGPU && r.labelledWhole():
		return true
	case r.label(labelStrategy) == strategySingle && r.label(LabelProduct) == "":
		return false // the cards may be in MIG mode, with one instance each
	}
	return r.gpus.Cards != nil && r.devices[units] == *r.gpus.Cards && !r.agentSeesMIG()
}

// labelledWhole reports whether labels say that cards are neither shared nor partitioned. Feature discovery appends
// instances and shares to the product, and its number of replicas is above 1 for shares. GKE labels its nodes with
// every way of sharing that it offers, and ACK with the mode of a node.
func (r *reading) labelledWhole() bool {
	if r.label(LabelProduct) != "" || r.label(LabelGKEAccelerator) != "" {
		return true
	}
	if mode := r.label(labelACKMode); mode == "default" || mode == "topology" {
		return true
	}
	replicas, _ := r.number(labelReplicas)
	return (replicas == 1 || r.label(labelSharing) == "none") && r.label(labelStrategy) != strategySingle
}

// moreThanCards reports whether a resource has more units than the node has cards, or than any machine can have: the
// cards are shared or partitioned, and no label says how.
func (r *reading) moreThanCards(units string) bool {
	announced := r.devices[units]
	cards, source, known := r.cardCount()
	most, limited := gpuinfo.MostAttached(r.label(LabelGKEAccelerator))
	switch {
	case known && announced > cards:
		r.cards(cards)
	case !known && limited && announced > most:
		cards, source = most, "the most for "+r.label(LabelGKEAccelerator)
	default:
		return announced > mostCards
	}
	r.problem(SharingUnlabelled,
		fmt.Sprintf("%s is %d on %s: the cards are shared or partitioned, and no label says how",
			units, announced, countedCards(cards, source)))
	return true
}

// leftOverInstances reports whether a bare nvidia.com/gpu stands beside names of MIG instances without any instance.
// The mixed strategy announced them before; with the single one, the instances are nvidia.com/gpu.
func (r *reading) leftOverInstances() bool {
	if r.devices[gpuinfo.NvidiaGPU] == 0 {
		return false
	}
	return someOf(r.devices, func(name string, _ int64) bool {
		resource, err := r.names.Resource(name)
		return err == nil && resource.Profile != ""
	})
}

// wholeMemory uses what the driver or ACK measured; a cloud's figure for a machine type is nominal. Without them, it is
// what an instance has that takes a whole card of the product, which is a little less than the card has.
func (r *reading) wholeMemory(units string) {
	memory, ok := r.gfdMemory()
	if !ok {
		memory, ok = memoryText(r.label(labelACKMemory))
	}
	if !ok && r.productKnown {
		memory = int64(r.product.LargestInstance())
		ok = memory > 0
	}
	if r.gpus.Product != nil {
		if most := int64(gpuinfo.MemoryOf(*r.gpus.Product)); most > 0 {
			memory = min(memory, most) // A label cannot promise more than the card has.
		}
	}
	if ok {
		r.memory(units, memory)
		r.gpus.CardMemoryMiB = &memory
	}
}

// virtualCard is how the driver names a part of a card that a hypervisor gives to a virtual machine: NVIDIA A10-4Q, or
// A100-1-5C for an instance (NVIDIA vGPU software, "Virtual GPU types").
var virtualCard = regexp.MustCompile(`-\d{1,3}[QCAB]$`)

// readPart recognizes a machine with a part of a card. Other machines have the rest, and the node does not show what
// separates them.
func (r *reading) readPart() bool {
	cards, known := gpuinfo.MachineOf(r.label(instanceTypes...))
	if known && cards == 0 || r.label(labelVGPU) == "true" || virtualCard.MatchString(r.label(LabelProduct)) {
		r.gpus.Cards = nil
		return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
	}
	if r.gpus.Product == nil || !r.belowProduct(r.labelledMemory(), int64(gpuinfo.MemoryOf(*r.gpus.Product))) {
		return false
	}
	r.gpus.Cards, r.gpus.CardMemoryMiB = nil, nil
	return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
}

// belowProduct reports labels that show far less memory than a card of the product has: a hypervisor or the driver
// gives a part of the card away, and no name says so, or a label is wrong. Drivers differ by less than a quarter.
func (r *reading) belowProduct(labelled, card int64) bool {
	if labelled <= 0 || 4*labelled >= 3*card {
		return false
	}
	r.problem(MemoryBelowProduct, fmt.Sprintf("labels show %d MiB of memory, and a card of the product %s has %d: a "+
		"unit is a part of a card, or a label is wrong", labelled, *r.gpus.Product, card))
	return true
}

// labelledMemory returns the MiB of a card that feature discovery, ACK or a cloud writes; 0 if none does.
func (r *reading) labelledMemory() int64 {
	if memory, ok := r.gfdMemory(); ok {
		return memory
	}
	return value(r.gpus.CardMemoryMiB)
}

// readConfigured uses the kind of a resource that only the configuration knows.
func (r *reading) readConfigured() bool {
	for _, resource := range r.names.Configured {
		if units := r.gpus.Units[resource.Name]; resource.Kind == gpuinfo.GPUMemory &&
			max(units, r.node.Capacity[resource.Name]) > 0 {
			r.perCard(resource.Name, units)
			r.memory(resource.Name, int64(resource.Unit))
			return r.is(gpuinfo.GPUMemory, gpuinfo.UnknownIsolation) // a name does not show what isolates workloads
		}
	}
	for _, name := range r.announced() {
		resource, err := r.names.Resource(name)
		if err != nil || resource.Profile != "" {
			continue
		}
		switch resource.Kind {
		case gpuinfo.TimeSliced:
			return r.is(gpuinfo.TimeSliced, gpuinfo.NoIsolation)
		case gpuinfo.MPS, gpuinfo.VGPU:
			return r.is(resource.Kind, gpuinfo.Limit)
		case gpuinfo.Whole, gpuinfo.MIG:
			return r.is(resource.Kind, gpuinfo.Hardware)
		}
	}
	return false
}
