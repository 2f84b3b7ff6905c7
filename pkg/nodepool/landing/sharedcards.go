package landing

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// OfShares returns how many of the announced shares of a node's cards a pod keeps from others that is given some of
// them: all of each card if it does not request their memory, and otherwise so many that a card holds no more such pods
// than have their memory there. That is what it requests of any other resource.
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
