package price

import (
	"cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Share returns the part of a node that a pod pays for, from 0 to 1: the part of its cards, or of its CPUs if it has no
// cards. A pod without GPUs on a node with GPUs pays for nothing, so the shares of all pods on a node never exceed 1.
// known is false if the node does not show what the pod's devices are.
func Share(names gpuinfo.Names, node *landing.Node, pod *landing.PodShape) (part float64, known bool) {
	if pod.Claims {
		return 0, false // the claims say which devices it has, and the template does not
	}
	if node.GPUs == nil || !hasCards(node.GPUs) {
		have, want := node.Allocatable["cpu"], pod.Requests["cpu"]
		if have <= 0 {
			return 0, false
		}
		return min(want.Float()/have.Float(), 1), true
	}
	cards, known := cardsOf(node.GPUs)
	if !known {
		return 0, false
	}
	taken, asks := 0.0, false
	for name, amount := range pod.Requests {
		resource, err := names.Resource(name)
		if err != nil || amount <= 0 || resource.Role == gpuinfo.Information {
			continue
		}
		asks = true
		more, known := cardsTaken(names, node.GPUs, pod, resource, amount.Float())
		if !known {
			return 0, false
		}
		taken += more
	}
	return min(taken/cards, 1), taken > 0 || !asks
}

func hasCards(gpus *sharing.GPUs) bool {
	if gpus.Cards != nil {
		return *gpus.Cards > 0
	}
	for _, units := range gpus.Units {
		if units > 0 {
			return true
		}
	}
	return false
}

// cardsOf returns how many cards a node has. A node with one plain resource whose cards nobody counts has as many as
// units, as long as nothing says that they are shares.
func cardsOf(gpus *sharing.GPUs) (float64, bool) {
	if gpus.Cards != nil {
		return float64(*gpus.Cards), true
	}
	units := gpus.Units[gpuinfo.NvidiaGPU]
	if gpus.Kind == gpuinfo.Whole || gpus.Kind == gpuinfo.WholeUnproven {
		return float64(units), units > 0
	}
	if gpus.Replicas != nil && *gpus.Replicas > 0 && gpus.Profile == nil {
		units = max(units, gpus.Units[gpuinfo.NvidiaGPUShared])
		return float64(units) / float64(*gpus.Replicas), units > 0
	}
	return 0, false
}

// cardsTaken returns how many cards an amount of one resource takes.
func cardsTaken(
	names gpuinfo.Names, gpus *sharing.GPUs, pod *landing.PodShape, r gpuinfo.Resource, units float64,
) (cards float64, known bool) {
	switch {
	case r.Role == gpuinfo.Memory && handedOutAlone(r.Name):
		return ofMemory(gpus, r, units)
	case r.Role != gpuinfo.Devices:
		return 0, true // it says how much of each device is meant: see vgpu
	case r.Profile != "":
		part, known := ofProfile(gpus, r.Profile)
		if r.Shared {
			if gpus.Replicas == nil || *gpus.Replicas <= 0 {
				return 0, false
			}
			part /= float64(*gpus.Replicas)
		}
		return part * units, known
	case r.Kind == gpuinfo.VGPU || gpus.Kind == gpuinfo.VGPU:
		return vgpu(gpus, pod, units)
	}
	return device(names, gpus, r, units)
}

// handedOutAlone reports whether pods request the memory without devices.
func handedOutAlone(resource string) bool {
	return resource == gpuinfo.AliyunMemory || resource == gpuinfo.VolcanoShared
}

// device returns the cards behind units of a plain resource, such as nvidia.com/gpu.
func device(
	names gpuinfo.Names, gpus *sharing.GPUs, r gpuinfo.Resource, units float64,
) (cards float64, known bool) {
	part := 1.0
	if gpus.Profile != nil {
		if part, known = ofProfile(gpus, *gpus.Profile); !known {
			return 0, false
		}
	}
	switch gpus.Kind {
	case gpuinfo.Whole, gpuinfo.WholeUnproven:
		return units, true
	case gpuinfo.MIG, gpuinfo.MIGUnproven:
		return part * units, !r.Shared || gpus.Replicas != nil
	case gpuinfo.TimeSliced, gpuinfo.MPS:
		if gpus.Replicas != nil && *gpus.Replicas > 0 {
			return part * units / float64(*gpus.Replicas), true
		}
	}
	// All units of the node are all of its cards.
	if all, count := gpus.Units[r.Name], gpus.Cards; all > 0 && count != nil && !handsOutSeveral(names, gpus) {
		return units * float64(*count) / float64(all), true
	}
	return 0, false
}

// handsOutSeveral reports whether a node hands out its cards under more than one name.
func handsOutSeveral(names gpuinfo.Names, gpus *sharing.GPUs) bool {
	found := 0
	for name, units := range gpus.Units {
		if resource, err := names.Resource(name); err == nil && resource.Role == gpuinfo.Devices && units > 0 {
			found++
		}
	}
	return found > 1
}

// ofProfile returns the part of a card that a MIG instance is (gpuinfo.Product.Part), by its product or, if that is
// unknown, by what all products with the profile have in common.
func ofProfile(gpus *sharing.GPUs, profile string) (part float64, known bool) {
	if gpus.Product != nil {
		if product, found := gpuinfo.ProductOf(*gpus.Product); found {
			if p, has := product.Profile(profile); has && product.Slices > 0 && product.Units > 0 {
				return product.Part(p), true
			}
		}
	}
	compute, card, known := gpuinfo.OfCard(profile)
	if !known {
		return 0, false
	}
	part = float64(compute) / float64(card)
	name, err := gpuinfo.ParseProfile(profile)
	if memory := gpus.CardMemoryMiB; memory != nil && *memory > 0 && err == nil {
		part = (part + min(float64(name.GB)*1024/float64(*memory), 1)) / 2
	}
	return part, true
}

// ofMemory returns the cards behind units of memory.
func ofMemory(gpus *sharing.GPUs, r gpuinfo.Resource, units float64) (cards float64, known bool) {
	if perCard := gpus.UnitsPerCard[r.Name]; perCard > 0 {
		return units / float64(perCard), true
	}
	unit := max(gpus.MemoryMiB[r.Name], int64(r.Unit))
	if unit > 0 && gpus.CardMemoryMiB != nil && *gpus.CardMemoryMiB > 0 {
		return units * float64(unit) / float64(*gpus.CardMemoryMiB), true
	}
	return 0, false
}

// vgpu returns the cards behind shares of HAMi, Volcano or Koordinator: by the memory of each share, or by its cores if
// no memory is requested. A share with neither has the whole card.
func vgpu(gpus *sharing.GPUs, pod *landing.PodShape, units float64) (cards float64, known bool) {
	asked := func(alternatives ...string) (amount raydemand.Amount) {
		for _, name := range alternatives {
			amount = cmp.Or(amount, pod.Requests[name])
		}
		return amount
	}
	for _, name := range []string{gpuinfo.HAMiMemory, gpuinfo.VolcanoMemory} {
		if memory := pod.Requests[name]; memory > 0 {
			unit, _ := gpus.MemoryUnit(name)
			if profile, cut := gpus.Holding(landing.WholeUnits(memory) * unit); cut {
				part, known := ofProfile(gpus, profile.Name)
				return units * part, known
			}
			part, known := ofMemory(gpus, gpuinfo.Resource{Name: name, Unit: 1}, memory.Float())
			return units * min(part, 1), known
		}
	}
	percent := asked(gpuinfo.HAMiMemoryPercentage, gpuinfo.VolcanoMemoryPercentage, gpuinfo.HAMiCores,
		gpuinfo.VolcanoCores)
	if percent > 0 {
		return units * min(percent.Float()/100, 1), true
	}
	// Koordinator counts percent of all cards together.
	if percent = asked(gpuinfo.KoordinatorMemoryRatio, gpuinfo.KoordinatorCores); percent > 0 {
		return percent.Float() / 100, true
	}
	return units, true
}
