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

// SharedCards is cards of which a node announces each share under one name: how many shares a card has, and its MiB.
type SharedCards struct {
	Shares    int64 `json:"shares"`
	MemoryMiB int64 `json:"memoryMiB"`
}

// PodsPerCard returns how many requests for this much memory a card holds at most; 0 is all of a card. A request takes
// no less than it says, so more never fit.
func (c SharedCards) PodsPerCard(mib int64) int64 {
	if mib <= 0 {
		return 1
	}
	return max(min(c.MemoryMiB/mib, c.Shares), 1)
}

// readAscend finds the cards whose shares are announced, and reports that templates are unknown.
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
			if devices[0].Count > 1 {
				if r.gpus.SharedCards == nil {
					r.gpus.SharedCards = map[string]SharedCards{}
				}
				r.gpus.SharedCards[chip] = SharedCards{devices[0].Count, devices[0].Memory}
			}
		}
		if shares > int64(len(devices)) {
			r.gpus.Problems = append(r.gpus.Problems, Problem{SharesUncounted, fmt.Sprintf("%s: %s in %d shares, "+
				"which count as %s: what a request for memory takes of a card is unknown, and may be more than it "+
				"says, so such a group can be launched more often than it fits", key, cards, shares, chip), key})
		}
	}
}
