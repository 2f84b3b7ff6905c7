package nodegpu

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// claimedUnits returns how many units of each resource stand for devices that ResourceClaims have. The device plugin
// and the driver for Dynamic Resource Allocation do not know of each other
// (docs/reference/facts.md#claims-beside-a-device-plugin), so the units of a claimed device are still announced. An
// instance is one unit of its profile. Any other device takes the whole card, with the units of each resource that
// stand for it.
func (r *reading) claimedUnits() map[string]int64 {
	taken := map[string]int64{}
	for _, device := range r.node.Devices {
		if device.claimed() && device.Type == "mig" {
			if name := r.instanceUnits(device); name != "" {
				taken[name]++
			}
		}
	}
	if claimed := int64(len(r.claimedCards())); claimed > 0 {
		cards := r.numberOfCards()
		for name, units := range r.gpus.Units {
			resource, err := r.names.Resource(name)
			if err != nil || resource.Role == gpuinfo.Information {
				continue
			}
			perCard, known := r.gpus.UnitsPerCard[name]
			if !known {
				perCard = (units + cards - 1) / cards
			}
			taken[name] += claimed * perCard
		}
	}
	maps.DeleteFunc(taken, func(_ string, n int64) bool { return n == 0 })
	if len(taken) == 0 {
		return nil
	}
	return taken
}

// claimed reports whether a ResourceClaim has the device.
func (d DRADevice) claimed() bool { return d.Allocated != nil && *d.Allocated }

// instanceUnits returns the resource of which an instance is one unit, empty if the node announces none.
func (r *reading) instanceUnits(device DRADevice) string {
	if r.gpus.Kind == gpuinfo.MIG && r.gpus.Profile != nil && r.gpus.Units[gpuinfo.NvidiaGPU] > 0 {
		return gpuinfo.NvidiaGPU
	}
	profile, err := gpuinfo.ParseProfile(device.Profile)
	if err != nil {
		return ""
	}
	for _, shared := range []bool{false, true} {
		if name := gpuinfo.ResourceName(profile, shared); r.gpus.Units[name] > 0 {
			return name
		}
	}
	return ""
}

// claimedCards returns the identities of cards that a ResourceClaim has as a whole, or in parts that are units of no
// resource, sorted.
func (r *reading) claimedCards() []string {
	claimed := map[string]bool{}
	for _, device := range r.node.Devices {
		if device.claimed() && (device.Type != "mig" || r.instanceUnits(device) == "") {
			claimed[device.card()] = true
		}
	}
	return slices.Sorted(maps.Keys(claimed))
}

// numberOfCards returns how many cards the node has: by its labels or, without them, as many as its devices are on.
func (r *reading) numberOfCards() int64 {
	if r.gpus.Cards != nil && *r.gpus.Cards > 0 {
		return *r.gpus.Cards
	}
	cards := map[string]bool{}
	for _, device := range r.node.Devices {
		cards[device.card()] = true
	}
	return int64(len(cards))
}

// emptyClaimed leaves nothing free on cards that ResourceClaims have. A card without the identity of a device is one of
// those without identity: the ones with the most room.
func (r *reading) emptyClaimed() {
	if len(r.gpus.PerCard) == 0 || r.gpus.PerCard[0].Source == "dra" || r.gpus.PerCard[0].Source == "pods" {
		return // they count claims
	}
	cards, full := r.gpus.PerCard, map[int]bool{}
	for _, id := range r.claimedCards() {
		at := slices.IndexFunc(cards, func(c Card) bool { return c.UUID != nil && *c.UUID == id })
		if at < 0 {
			at = emptiest(cards, full)
		}
		if at >= 0 {
			full[at] = true
		}
	}
	for at := range full {
		cards[at].empty()
	}
}

// emptiest returns the position of the card with the most units or memory free among those that are not full, or -1.
func emptiest(cards []Card, full map[int]bool) int {
	best, most := -1, int64(-1)
	for i := range cards {
		free := int64(0)
		for _, n := range []*int64{cards[i].FreeMiB, cards[i].FreeUnits} {
			if n != nil {
				free = *n
				break
			}
		}
		if !full[i] && free > most {
			best, most = i, free
		}
	}
	return best
}
