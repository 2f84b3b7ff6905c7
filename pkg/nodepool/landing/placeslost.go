package landing

import (
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// blocks returns how many places for larger instances one more device removes, on the card that suits it best:
// considering the instances that are in use now, as far as single cards are known. The layout of such a card can be
// changed around what is in use. It is nil if the device is not a MIG instance, or no card is known.
func (w sliceRequest) blocks(nodes []sharing.GPUs) *int64 {
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
