package sharing

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ascendRegister begins the annotations in which HAMi's plugin for Huawei's Ascend registers cards, one for each chip,
// such as hami.io/node-register-Ascend910B4 (HAMi/ascend-device-plugin, internal/server/register.go). The plugin
// announces every share of them as huawei.com/<chip>. A pod without huawei.com/<chip>-memory takes a whole card, and
// any other the smallest template of the scheduler's configuration that holds it, which no node shows (HAMi,
// MutateAdmission and Fit in pkg/device/ascend/device.go).
const ascendRegister = "hami.io/node-register-Ascend"

// readAscend reports cards whose shares are announced and not counted card by card.
func (r *reading) readAscend() {
	for _, key := range slices.Sorted(maps.Keys(r.node.Annotations)) {
		if !strings.HasPrefix(key, ascendRegister) {
			continue
		}
		chip := "huawei.com/" + strings.TrimPrefix(key, "hami.io/node-register-")
		devices, err := hamiDevices(key, r.node.Annotations[key])
		if err != nil || len(devices) == 0 {
			r.unreadable(key, "HAMi's scheduler takes no cards from it", err)
			continue
		}
		var shares int64
		for i := range devices {
			shares += devices[i].Count
		}
		cards := countedCards(int64(len(devices)), "")
		if alike(devices) {
			cards += fmt.Sprintf(" of %d MiB", devices[0].Memory)
		}
		if shares > int64(len(devices)) {
			r.gpus.Problems = append(r.gpus.Problems, Problem{SharesUncounted, fmt.Sprintf("%s: %s in %d shares, "+
				"which count as %s: how many pods fit on a card is unknown, so a group that requests more of a card "+
				"than one share is launched more often than it fits", key, cards, shares, chip), key})
		}
	}
}
