package nodegpu

import "heliostat.dev/heliostat/pkg/gpuinfo"

// measureInstances sets the size of each MIG instance and of its card on the memory axis, if the product is known. A
// picture of the card needs both.
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
