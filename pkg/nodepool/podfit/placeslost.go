package podfit

import (
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

// blocks is how many places for larger instances one more device takes away, on the card of all nodes that is best for it: of the instances
// that are in use now, as far as single cards tell. The layout of such a card can be changed around what is in use; what is taken stands in the
// way. It is nil where the device is no MIG instance, or no card tells.
func (w sliceRequest) blocks(nodes []nodegpu.GPUs) *int64 {
	var least *int64
	for _, node := range nodes {
		profile := w.resource.Profile
		if profile == "" && node.Profile != nil {
			profile = *node.Profile
		}
		product, known := productOf(node)
		if profile == "" || !known {
			continue
		}
		for _, card := range node.PerCard {
			if n, ok := node.WithUse(card).PlacesLost(product, profile); ok && (least == nil || n < *least) {
				least = &n
			}
		}
	}
	return least
}
