package sharing

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Card is what is known about one physical card of a node. A request must fit on one card, which a sum over cards
// cannot show. Unknown values are nil.
type Card struct {
	// Index is the card's number on the node, UUID its identity. Both are nil if only the number of free cards is
	// known; the free ones then come first.
	Index *int    `json:"index"`
	UUID  *string `json:"uuid"`
	// MemoryMiB is the memory of the card that pods can get. FreeMiB is the part that no pod has requested, and
	// UnusedMiB the part that no process held when the agent last looked. Only FreeMiB is room for a pod.
	MemoryMiB *int64 `json:"memoryMiB"`
	FreeMiB   *int64 `json:"freeMiB"`
	UnusedMiB *int64 `json:"unusedMiB"`
	// FreeUnits is what is free in the node's units: memory units of gpu-mem, shares of HAMi and Volcano, percent of a
	// card's memory of Koordinator, 1 or 0 for a whole card.
	FreeUnits *int64 `json:"freeUnits"`
	// Shares is into how many shares HAMi or Volcano may split the card; 0 if neither does.
	Shares int64 `json:"shares,omitempty"`
	// Profiles are the MIG profiles into which HAMi or Volcano cuts the card on request, the smallest first; nil if it
	// cuts none or if they are unknown. UnprovenMiB is the largest request for memory that other profiles may hold: all
	// of the card if the profiles are unknown, or what a registered one has that the product cannot have; 0 if none
	// may.
	Profiles    []OfferedProfile `json:"profiles,omitempty"`
	UnprovenMiB int64            `json:"unprovenMiB,omitempty"`
	// FreeCores is in percent of the card's multiprocessors, if they can be requested.
	FreeCores *int64 `json:"freeCores"`
	// Instances are the card's MIG instances, empty if it has none.
	Instances []CardInstance `json:"instances"`
	// MemoryUnits is the length of the card's memory axis, nil if the product has no MIG or is unknown.
	MemoryUnits *int `json:"memoryUnits"`
	// Healthy is false if no work should go to the card; Problem gives the reason.
	Healthy *bool  `json:"healthy"`
	Problem string `json:"problem,omitempty"`
	// Model is the card's model and Mode how it is shared, as HAMi or Volcano registers them; empty if they are
	// unknown.
	Model string `json:"model,omitempty"`
	Mode  string `json:"mode,omitempty"`
	// Source is where the values come from: hami, volcano, koordinator, gpu-mem, dra, agent, or
	// pods.
	Source string `json:"source"`
}

// CardInstance is a MIG instance on a card. Start is the first unit of the card's memory axis that it occupies, and
// Size the number of units.
type CardInstance struct {
	Profile string `json:"profile"`
	Start   *int   `json:"start"`
	Size    *int   `json:"size"`
	Free    *bool  `json:"free"`
}

// usable reports whether the card is not known to be unhealthy.
func (c Card) usable() bool { return c.Healthy == nil || *c.Healthy }

// empty marks a card as full.
func (c *Card) empty() {
	none := int64(0)
	c.FreeMiB, c.FreeUnits = &none, &none
	if c.FreeCores != nil {
		c.FreeCores = &none
	}
}

// PlacesLost returns how many places for larger instances one more instance of a profile removes on the card. It
// returns false if the profile does not fit, or if it is unknown which instances are in use.
func (c Card) PlacesLost(product gpuinfo.Product, profile string) (n int64, ok bool) {
	wanted, has := product.Profile(profile)
	if !has || !c.usable() || c.Instances == nil {
		return 0, false
	}
	var used []gpuinfo.Instance
	for _, instance := range c.Instances {
		switch {
		case instance.Free == nil || instance.Start == nil:
			return 0, false
		case !*instance.Free:
			used = append(used, gpuinfo.Instance{Profile: instance.Profile, Start: *instance.Start})
		}
	}
	after, err := product.Place(used, wanted.Name)
	if err != nil {
		return 0, false
	}
	return larger(product, used, wanted.Size) - larger(product, slices.Concat(used, after), wanted.Size), true
}

// larger counts the places for instances larger than size beside the ones in use.
func larger(product gpuinfo.Product, beside []gpuinfo.Instance, size int) (n int64) {
	additions, err := product.Additions(beside)
	if err != nil {
		return 0
	}
	for _, instance := range additions {
		if profile, has := product.Profile(instance.Profile); has && profile.Plain() && profile.Size > size {
			n++
		}
	}
	return n
}

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

// readFree finds what is free: the node's units less what its pods request and what ResourceClaims have, and what is
// known about each card.
func (r *reading) readFree() {
	r.gpus.Claimed = r.claimedUnits()
	if r.node.Pods != nil && r.gpus.Units != nil {
		r.freeUnits()
	}
	for _, source := range cardSources {
		if cards := source(r); len(cards) > 0 {
			r.gpus.PerCard = cards
			break
		}
	}
	r.emptyClaimed()
	r.joinAgent()
	r.measureInstances()
	slices.SortStableFunc(r.gpus.PerCard, func(a, b Card) int {
		if a.Index == nil || b.Index == nil {
			return 0
		}
		return cmp.Compare(*a.Index, *b.Index)
	})
}

// cardSources describe single cards, the most exact first: a scheduler that shares cards records its assignments.
var cardSources = []func(*reading) []Card{
	(*reading).hamiCards, (*reading).volcanoCards, (*reading).unregisteredCards, (*reading).koordinatorCards,
	(*reading).gpuMemoryCards, (*reading).draCards, (*reading).wholeCards,
}

func (r *reading) freeUnits() {
	r.gpus.Free = map[string]int64{}
	for name, units := range r.gpus.Units {
		if resource, err := r.names.Resource(name); err == nil && resource.Role == gpuinfo.Information {
			continue
		}
		for _, pod := range r.node.Pods {
			units -= pod.Requests[name]
		}
		units -= r.gpus.Claimed[name]
		r.gpus.Free[name] = max(units, 0)
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
