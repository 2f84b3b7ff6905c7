package sharing

import (
	"maps"
	"slices"
	"strings"
)

// intelCards adds up feature discovery's counts by PCI device.
func (r *reading) intelCards() {
	var sum int64
	for _, key := range slices.Sorted(maps.Keys(r.node.Labels)) {
		if strings.HasPrefix(key, "gpu.intel.com/device-id.") && strings.HasSuffix(key, ".count") {
			n, _ := r.number(key)
			sum += n
		}
	}
	if sum > 0 {
		r.cards(sum)
	}
}
