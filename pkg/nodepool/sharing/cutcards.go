package sharing

import (
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// CutCards are physical cards of one product that are whole or partitioned with MIG, on one node or on identical nodes.
type CutCards struct {
	// Product is NVIDIA's name, as in gpuinfo.
	Product string `json:"product"`
	// Count is how many cards there are.
	Count int64 `json:"count"`
	// Cut lists the instances on all of them together. It is empty if they are whole.
	Cut []Cut `json:"cut,omitempty"`
	// Busy is how many of them pods use, nil if unknown.
	Busy *int64 `json:"busy"`
}

// Cut is a number of MIG instances of a profile.
type Cut struct {
	Profile string `json:"profile"`
	Count   int64  `json:"count"`
}

// CutCards returns the cards of a node. It returns false if their product, number or partitions are unknown, or if they
// are neither whole nor partitioned with MIG.
func (n *GPUs) CutCards() (CutCards, bool) {
	if n.Product == nil || n.slicedOnDemand() {
		return CutCards{}, false
	}
	product, known := gpuinfo.ProductOf(*n.Product)
	if !known {
		return CutCards{}, false
	}
	cards := CutCards{Product: product.Name}
	switch n.Kind {
	case gpuinfo.Whole:
		cards.Count = n.Units[gpuinfo.NvidiaGPU]
		if n.Cards != nil {
			cards.Count = *n.Cards
		}
		if free, ok := n.Free[gpuinfo.NvidiaGPU]; ok && cards.Count == n.Units[gpuinfo.NvidiaGPU] {
			busy := cards.Count - free
			cards.Busy = &busy
		}
		cards.leaveOut(n.unhealthy())
	case gpuinfo.MIG:
		if !n.cut(product, &cards) {
			return CutCards{}, false
		}
	}
	return cards, cards.Count > 0
}

// cut reads instances: under their own resource names, or under the name of whole cards if all are alike.
func (n *GPUs) cut(product gpuinfo.Product, cards *CutCards) bool {
	counts, healthy, held, known := map[string]int64{}, map[string]int64{}, int64(0), n.Free != nil
	for resource, units := range n.Units {
		name := ""
		if read, err := (gpuinfo.Names{}).Resource(resource); err == nil && read.Profile != "" {
			name = read.Profile
		} else if resource == gpuinfo.NvidiaGPU && n.Profile != nil {
			name = *n.Profile
		}
		if name == "" || units <= 0 {
			continue
		}
		profile, has := product.Profile(name)
		if !has {
			return false
		}
		counts[profile.Name] += units
		healthy[profile.Name] += n.healthy(resource)
		held += units - n.Free[resource]
	}
	if len(counts) == 0 || n.Replicas != nil && *n.Replicas > 1 {
		return false
	}
	full := len(counts) == 1
	for _, profile := range product.Profiles {
		if units := counts[profile.Name]; units > 0 {
			cards.Cut = append(cards.Cut, Cut{profile.Name, healthy[profile.Name]})
			full = full && units%int64(profile.Max) == 0
			if n.Cards == nil && full {
				cards.Count = units / int64(profile.Max)
			}
		}
	}
	if n.Cards != nil {
		cards.Count = *n.Cards
	}
	if known {
		cards.Busy = n.busyCards(cards.Count, held)
	}
	cards.leaveOut(n.unhealthy())
	return true
}

// healthy returns how many of a resource's units are on healthy cards.
func (n *GPUs) healthy(resource string) int64 {
	if units, ok := n.HealthyUnits[resource]; ok {
		return units
	}
	return n.Units[resource]
}

// leaveOut removes unhealthy cards, which are not worth repartitioning. Afterwards Busy is unknown, because the removed
// cards may be in use.
func (p *CutCards) leaveOut(unhealthy int64) {
	if unhealthy > 0 {
		p.Count, p.Busy = max(p.Count-unhealthy, 0), nil
	}
}

// busyCards returns how many cards are in use by pods, nil if the units on all cards together do not show it.
func (n *GPUs) busyCards(count, held int64) *int64 {
	busy := int64(0)
	switch {
	case held == 0:
	case count == 1:
		busy = 1
	case int64(len(n.PerCard)) != count:
		return nil
	default:
		for _, card := range n.PerCard {
			card = n.WithUse(card)
			if card.Instances == nil ||
				slices.ContainsFunc(card.Instances, func(i CardInstance) bool { return i.Free == nil }) {
				return nil
			}
			if slices.ContainsFunc(card.Instances, func(i CardInstance) bool { return !*i.Free }) {
				busy++
			}
		}
	}
	return &busy
}

// Alike reports whether the cards of both are partitioned alike, on average.
func (p *CutCards) Alike(other CutCards) bool {
	return p.Product == other.Product && (p.Busy == nil) == (other.Busy == nil) &&
		slices.EqualFunc(p.Cut, other.Cut, func(a, b Cut) bool {
			return a.Profile == b.Profile && a.Count*other.Count == b.Count*p.Count
		})
}

func (p *CutCards) Add(more CutCards) {
	p.Count += more.Count
	for i := range p.Cut {
		p.Cut[i].Count += more.Cut[i].Count
	}
	if p.Busy != nil {
		busy := *p.Busy + *more.Busy
		p.Busy = &busy
	}
}
