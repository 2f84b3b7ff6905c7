package landing

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// OfShares returns how many units of a resource a pod keeps from others on a node. Of shares of cards, these are all
// those of each card if the pod requests no memory, and otherwise so many that a card holds no more such pods than its
// memory does. Of any other resource, it is what the pod requests.
func OfShares(gpus *sharing.GPUs, requests Quantities, name string) raydemand.Amount {
	want := requests[name]
	if gpus == nil {
		return want
	}
	cards, shared := gpus.SharedCards[name]
	parts := WholeUnits(want)
	if !shared || parts <= 0 {
		return want
	}
	perCard := cards.PodsPerCard(WholeUnits(requests[name+"-memory"]) / parts)
	return max(want, want.Times(cards.Shares)/raydemand.Amount(perCard))
}

// ofShares is OfShares on the node where the pod keeps the most.
func (s *Nodes) ofShares(p *PodShape, name string) raydemand.Amount {
	most := p.Requests[name]
	if _, is := gpuinfo.AcceleratorOf(name); !is {
		return most
	}
	for _, kind := range s.kindsFor(nil) {
		most = max(most, OfShares(kind.Node.GPUs, p.Requests, name))
	}
	return most
}
