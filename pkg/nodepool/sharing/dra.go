package sharing

import (
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readDRA recognizes a node whose GPUs are allocated only by resource claims.
func (r *reading) readDRA() bool {
	if len(r.node.Devices) == 0 || r.offers() {
		return false
	}
	kind, isolation, parents := gpuinfo.Whole, gpuinfo.Hardware, map[string]bool{}
	for _, d := range r.node.Devices {
		parents[d.card()] = true
		switch d.Type {
		case "mig":
			kind = gpuinfo.MIG
		case AMDPartition:
			kind, isolation = gpuinfo.UnknownKind, gpuinfo.UnknownIsolation
		}
		if r.gpus.Product == nil && d.Product != "" {
			model := d.Product
			r.gpus.Product = &model
			r.product, r.productKnown = gpuinfo.ProductOf(model)
		}
	}
	r.cards(int64(len(parents)))
	if slices.ContainsFunc(r.node.Devices, func(d DRADevice) bool { return d.Shared }) {
		kind, isolation = gpuinfo.UnknownKind, gpuinfo.UnknownIsolation
	}
	return r.is(kind, isolation)
}

// offers reports whether the node announces healthy devices, or memory, for which no devices are announced.
func (r *reading) offers() bool {
	return slices.ContainsFunc(r.announced(), func(name string) bool { return r.gpus.Units[name] > 0 }) ||
		max(r.gpus.Units[gpuinfo.AliyunMemory], r.gpus.Units[gpuinfo.VolcanoShared]) > 0
}

// draCards joins the devices of each card. If instances are created on demand, the slice offers the card and every
// instance that it could have: then only the allocated ones exist, and a card is whole only while none is allocated.
func (r *reading) draCards() []Card {
	var order []string
	byCard := map[string][]DRADevice{}
	for _, d := range r.node.Devices {
		if byCard[d.card()] == nil {
			order = append(order, d.card())
		}
		byCard[d.card()] = append(byCard[d.card()], d)
	}
	cards := make([]Card, 0, len(order))
	for _, id := range order {
		cards = append(cards, draCard(id, byCard[id]))
	}
	return cards
}

func draCard(id string, devices []DRADevice) Card {
	card := Card{Source: "dra"}
	if strings.HasPrefix(id, "GPU-") {
		card.UUID = &id
	}
	onDemand, known, taken, left := false, true, int64(0), int64(0)
	for _, d := range devices {
		if index, ok := draIndex(d.Name); ok && card.Index == nil && d.Type != AMDPartition {
			card.Index = &index
		}
		if !d.isPart() {
			if onDemand, card.MemoryMiB = true, nil; d.MemoryMiB > 0 {
				card.MemoryMiB = new(d.MemoryMiB)
			}
		}
		switch {
		case d.Allocated == nil:
			known = false
		case *d.Allocated:
			taken += d.MemoryMiB
		case d.isPart():
			left += d.MemoryMiB
		}
		if healthy := d.Taint == ""; card.Healthy == nil || !healthy {
			card.Healthy, card.Problem = &healthy, d.Taint
		}
	}
	if onDemand && card.MemoryMiB != nil {
		left = max(*card.MemoryMiB-taken, 0)
	}
	if known && (!onDemand || card.MemoryMiB != nil) {
		card.FreeMiB = &left
	}
	card.Instances = draInstances(devices, onDemand)
	if !card.Usable() {
		card.empty()
	}
	return card
}

// draInstances returns the existing instances, nil if they are created on demand and their allocation is unknown.
func draInstances(devices []DRADevice, onDemand bool) []CardInstance {
	instances := []CardInstance{}
	for _, d := range devices {
		if d.Type != "mig" {
			continue
		}
		instance := CardInstance{Profile: d.Profile, Start: draStart(d.Name)}
		if d.Allocated != nil {
			instance.Free = new(!*d.Allocated)
		}
		switch {
		case onDemand && d.Allocated == nil:
			return nil
		case !onDemand || *d.Allocated:
			instances = append(instances, instance)
		}
	}
	return instances
}

// draIndex reads the card's number from gpu-0 and gpu-0-mig-1g5gb-19-0.
func draIndex(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, "gpu-")
	if !ok {
		return 0, false
	}
	digits, _, _ := strings.Cut(rest, "-")
	index, err := strconv.Atoi(digits)
	return index, err == nil
}

// draStart reads where an instance begins: the last number of its name.
func draStart(name string) *int {
	start, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil || !strings.Contains(name, "-mig-") {
		return nil
	}
	return &start
}

// AMDPartition is the type of a partition of one of AMD's cards, whose Profile is its mode.
const AMDPartition = "amd-partition"

// OtherDevice is the type of a GPU of a driver whose attributes are not known, such as gpu.intel.com: it shows that the
// GPUs of the node are supplied, and not what they are.
const OtherDevice = "other"

func (d DRADevice) isPart() bool { return d.Type == "mig" || d.Type == AMDPartition }

// DRADevice is a GPU, or a part of one, that a ResourceSlice of the node offers (resource.k8s.io/v1, drivers
// gpu.nvidia.com and gpu.amd.com). What the driver does not report is empty or 0.
type DRADevice struct {
	// Name is the device's name in its slice: gpu-0, or gpu-0-mig-1g5gb-19-0 with NVML's profile number and the start.
	Name string
	// Type is gpu, mig, AMDPartition or OtherDevice. UUID is the device's own, ParentUUID that of the card of a part.
	// AMD's cards have PCI addresses in their place.
	Type, UUID, ParentUUID string
	Product, Profile       string
	MemoryMiB              int64
	// Allocated reports whether a ResourceClaim has the device; nil while claims are unknown.
	Allocated *bool
	// Shared: several claims may have a part of the device each (allowMultipleAllocations), whose amounts are not read.
	Shared bool
	// Taint is why nothing is allocated on the device (gpu.nvidia.com/xid), empty if there is no taint.
	Taint string
}

// card returns the identity of the card that the device is, or is on.
func (d DRADevice) card() string {
	if d.ParentUUID != "" {
		return d.ParentUUID
	}
	if d.Type == "mig" {
		card, _, _ := strings.Cut(d.Name, "-mig-")
		return card
	}
	if d.UUID != "" {
		return d.UUID
	}
	return d.Name
}
