package nodegpu

import (
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// CutCards are physical cards of one product that are whole or cut with MIG, on one node or on nodes alike.
type CutCards struct {
	// Product is NVIDIA's name as gpuinfo has it.
	Product string `json:"product"`
	// Count is how many cards there are.
	Count int64 `json:"count"`
	// Cut is what all of them together are cut into; none: they are whole.
	Cut []Cut `json:"cut,omitempty"`
	// Busy is how many of them pods hold something of; nil where that is not known.
	Busy *int64 `json:"busy"`
}

// Cut is so many MIG instances of a profile.
type Cut struct {
	Profile string `json:"profile"`
	Count   int64  `json:"count"`
}

// CutCards are the cards of a node; false where their product, their number or their cut is not known, or they are
// handed out otherwise than whole or by MIG instances.
func (n *GPUs) CutCards() (CutCards, bool) {
	if n.Product == nil {
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
		if free, told := n.Free[gpuinfo.NvidiaGPU]; told && cards.Count == n.Units[gpuinfo.NvidiaGPU] {
			busy := cards.Count - free
			cards.Busy = &busy
		}
		cards.leaveOut(n.ill())
	case gpuinfo.MIG:
		if !n.cut(product, &cards) {
			return CutCards{}, false
		}
	}
	return cards, cards.Count > 0
}

// cut reads instances: under names of their own, or under the name of whole cards where all are alike.
func (n *GPUs) cut(product gpuinfo.Product, cards *CutCards) bool {
	counts, well, held, told := map[string]int64{}, map[string]int64{}, int64(0), n.Free != nil
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
		well[profile.Name] += n.well(resource)
		held += units - n.Free[resource]
	}
	if len(counts) == 0 || n.Replicas != nil && *n.Replicas > 1 {
		return false
	}
	full := len(counts) == 1
	for _, profile := range product.Profiles {
		if units := counts[profile.Name]; units > 0 {
			cards.Cut = append(cards.Cut, Cut{profile.Name, well[profile.Name]})
			full = full && units%int64(profile.Max) == 0
			if n.Cards == nil && full {
				cards.Count = units / int64(profile.Max)
			}
		}
	}
	if n.Cards != nil {
		cards.Count = *n.Cards
	}
	if told {
		cards.Busy = n.busyCards(cards.Count, held)
	}
	cards.leaveOut(n.ill())
	return true
}

// well is what of a resource's units is on cards that are well.
func (n *GPUs) well(resource string) int64 {
	if units, told := n.WellUnits[resource]; told {
		return units
	}
	return n.Units[resource]
}

// leaveOut takes away cards that are not well: none of them is worth cutting anew. Whether they are among those that
// pods hold is not known.
func (p *CutCards) leaveOut(ill int64) {
	if ill > 0 {
		p.Count, p.Busy = max(p.Count-ill, 0), nil
	}
}

// busyCards is how many cards hold something that a pod has; nil where the sum over cards does not tell which.
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

// Alike reports whether a card of one is cut as a card of the other is, on average.
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
