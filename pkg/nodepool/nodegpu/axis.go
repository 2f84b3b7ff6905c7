package nodegpu

import "heliostat.dev/heliostat/pkg/gpuinfo"

// measureInstances says how long each MIG instance and its card are on the memory axis, where the product is known:
// what a picture of the card needs.
func (r *reading) measureInstances() {
	if r.gpus.Product == nil {
		return
	}
	product, known := gpuinfo.ProductOf(*r.gpus.Product)
	if !known {
		return
	}
	for i := range r.gpus.PerCard {
		card := &r.gpus.PerCard[i]
		if card.Instances == nil {
			continue
		}
		card.MemoryUnits = &product.Units
		for j := range card.Instances {
			if profile, ok := product.Profile(card.Instances[j].Profile); ok {
				card.Instances[j].Size = &profile.Size
			}
		}
	}
}
