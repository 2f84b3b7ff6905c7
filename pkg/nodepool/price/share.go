package price

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Share returns the part of a node that a pod pays for, from 0 to 1: the part of its GPUs, or of its CPUs if it has no
// GPUs. A pod without GPUs on a node with GPUs pays for nothing. known is false if the node does not show what the
// pod's devices are.
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
	if pod.Share != nil {
		cards := node.Allocatable[gpuinfo.NvidiaGPU].Float()
		if part, known = pod.Share.OfCard(node.Labels); !known || cards <= 0 {
			return 0, false
		}
		return min(part*float64(pod.Share.Cards)/cards, 1), true
	}
	slices := landing.SlicesOn(names, pod, *node.GPUs)
	if len(slices) == 0 {
		return 0, true
	}
	if part, known = ofMemory(names, node.GPUs, slices); !known {
		part = ofUnits(names, node.GPUs, pod)
	}
	return min(part, 1), part > 0
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

// ofMemory returns the part of the memory of all cards that slices have, where parts of cards differ: then the parts of
// all pods never exceed the node. It is unknown where units are alike, and where the node does not show its memory.
func ofMemory(names gpuinfo.Names, gpus *sharing.GPUs, slices []landing.Slice) (part float64, known bool) {
	memory, cards, several := gpus.CardMemoryMiB, gpus.Cards, handsOutSeveral(names, gpus)
	for i := range slices {
		s := &slices[i]
		if s.Kind != gpuinfo.VGPU && !several || s.MemoryMiB == nil || memory == nil || *memory <= 0 || cards == nil {
			return 0, false
		}
		each := min(float64(*s.MemoryMiB)/float64(*memory), 1) / float64(*cards)
		part += each * float64(s.UnitsPerPod)
	}
	return part, true
}

// ofUnits returns the largest part of all units of one GPU resource of the node that a pod requests.
func ofUnits(names gpuinfo.Names, gpus *sharing.GPUs, pod *landing.PodShape) (part float64) {
	for name, amount := range pod.Requests {
		resource, err := names.Resource(name)
		if all := gpus.Units[name]; err == nil && all > 0 && resource.Role != gpuinfo.Information {
			part = max(part, amount.Float()/float64(all))
		}
	}
	return part
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
