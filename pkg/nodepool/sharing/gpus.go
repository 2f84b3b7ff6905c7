package sharing

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func (n *GPUs) unhealthy() int64 {
	var count int64
	for _, card := range n.PerCard {
		if !card.Usable() {
			count++
		}
	}
	return count
}

// KnownProduct returns the product of the cards, if a table has it.
func (n *GPUs) KnownProduct() (product gpuinfo.Product, known bool) {
	if n.Product == nil {
		return product, false
	}
	return gpuinfo.ProductOf(*n.Product)
}

// HealthyCards returns how many of the node's cards accept work, nil if their number is unknown.
func (n *GPUs) HealthyCards() *int64 {
	if n.Cards == nil {
		return nil
	}
	return new(max(*n.Cards-n.unhealthy(), 0))
}

// LargestCard returns what the largest card of a node can offer of a memory resource.
func (n GPUs) LargestCard(resource string) (units int64, known bool) {
	unit, known := n.MemoryUnit(resource)
	if perCard, ok := n.UnitsPerCard[resource]; ok && (len(n.Profiles) == 0 || !known) {
		return perCard, true
	}
	if resource == gpuinfo.AliyunMemory || !known {
		return 0, false
	}
	for i := range n.PerCard {
		card := &n.PerCard[i]
		if card.MemoryMiB == nil {
			return 0, false
		}
		largest := *card.MemoryMiB
		if most := len(card.Profiles) - 1; most >= 0 {
			largest = card.Profiles[most].MemoryMiB
		}
		units = max(units, largest/unit)
	}
	return units, len(n.PerCard) > 0
}

// MemoryUnit returns the MiB of one unit of memory of HAMi or Volcano: what the node shows, or 1. It is unknown if the
// node announces the resource and nothing explains how much.
func (n GPUs) MemoryUnit(resource string) (mib int64, known bool) {
	mib = n.MemoryMiB[resource]
	return max(mib, 1), mib > 0 || n.Units[resource] == 0
}

// Announces reports whether the node may have units of a resource. It is true for a node whose units are unknown.
func (n GPUs) Announces(resource string) bool { return n.Units == nil || n.Units[resource] > 0 }

// Contradicts reports whether the node shows that a name does not mean what it says.
func (n GPUs) Contradicts() bool {
	return n.has(NamesContradict) || n.has(SharingUnlabelled) || n.has(MemoryBelowProduct)
}

func (n *GPUs) has(code ProblemCode) bool {
	return slices.ContainsFunc(n.Problems, func(p Problem) bool { return p.Code == code })
}

// GPUs is what is known about a node's GPUs. What the node does not prove is left out (nil, or unknown kind and
// isolation): no number is better than a wrong one.
type GPUs struct {
	Name string  `json:"name"`
	Pool *string `json:"pool"`
	// Product is the model as the node names it, without the suffixes that feature discovery adds for slices and
	// shares.
	Product *string `json:"product"`
	// Cards is the number of physical cards.
	Cards *int64       `json:"cards"`
	Kind  gpuinfo.Kind `json:"kind"`
	// Units is what pods can request, by resource, zeros included.
	Units map[string]int64 `json:"units"`
	// MemoryMiB is the memory behind one unit, for resources where it is known.
	MemoryMiB map[string]int64 `json:"memoryMiB"`
	// UnitsPerCard is set for memory that is requested in units: a request must fit on one card.
	UnitsPerCard map[string]int64  `json:"unitsPerCard"`
	Isolation    gpuinfo.Isolation `json:"isolation"`
	// CardMemoryMiB is the memory of one physical card.
	CardMemoryMiB *int64 `json:"cardMemoryMiB"`
	// Profiles are the MIG profiles into which HAMi or Volcano cuts the cards on request, the smallest first; nil if it
	// cuts none, or if they are not the same for all cards. A request for memory takes the first that holds it.
	Profiles []OfferedProfile `json:"profiles,omitempty"`
	// SharedCards are cards of Ascend, by the resource under which their shares are announced.
	SharedCards map[string]SharedCards `json:"sharedCards,omitempty"`
	// Profile is the MIG profile behind a plain resource name. Replicas is how many clients share one device.
	Profile  *string `json:"profile"`
	Replicas *int64  `json:"replicas"`
	// Free is the number of units that no pod on the node requests, by resource; nil while pods are unknown.
	Free map[string]int64 `json:"free"`
	// HealthyUnits is what the healthy cards offer of a resource, if that is less than its Units; nil while no card is
	// known to be unhealthy.
	HealthyUnits map[string]int64 `json:"wellUnits"`
	// Unregistered: HAMi registers no card of the node, which is certain, so its scheduler places no pod there that
	// requests a part of one.
	Unregistered bool `json:"-"`
	// PerCard is what is known about single cards; nil if nothing is.
	PerCard  []Card    `json:"perCard"`
	Problems []Problem `json:"problems"`
	// Bad are the signs that GPUs are bad.
	Bad []BadGPU `json:"-"`
}

// readHealthy finds what the healthy cards offer of each resource, if some cards are known to be unhealthy. A device
// plugin keeps announcing cards whose fault it does not see: NVIDIA's ignores XIDs that it attributes to the
// application, and ECC errors. Without a readable register, nothing of a node of HAMi is known to be healthy.
func (r *reading) readHealthy() {
	if r.unregistered {
		r.gpus.HealthyUnits = r.gpus.WithoutHealthy().HealthyUnits
		return
	}
	unhealthy := r.gpus.unhealthy()
	if unhealthy == 0 {
		return
	}
	for name, units := range r.gpus.Units {
		if healthy, known := r.healthyUnits(name, r.allCards()-unhealthy); known && healthy < units {
			if r.gpus.HealthyUnits == nil {
				r.gpus.HealthyUnits = map[string]int64{}
			}
			r.gpus.HealthyUnits[name] = healthy
		}
	}
}

// WithoutHealthy returns the GPUs as if no card were healthy.
func (n *GPUs) WithoutHealthy() *GPUs {
	bad := *n
	bad.HealthyUnits = map[string]int64{}
	for name := range n.Units {
		bad.HealthyUnits[name] = 0
	}
	return &bad
}

// healthyShares adds up what healthy cards that differ offer of a resource of HAMi or Volcano.
func (r *reading) healthyShares(name string, role gpuinfo.Role) (units int64) {
	unit, _ := r.gpus.MemoryUnit(name)
	for _, card := range r.gpus.PerCard {
		switch {
		case !card.Usable():
		case role == gpuinfo.Devices:
			units += card.Shares
		case role == gpuinfo.Cores:
			units += 100
		case card.MemoryMiB != nil:
			units += *card.MemoryMiB / unit
		}
	}
	return units
}

// Differ reports whether the cards of a node of HAMi or Volcano have different memory, numbers of shares or profiles.
func (n GPUs) Differ() bool {
	return n.Kind == gpuinfo.VGPU && slices.ContainsFunc(n.PerCard, func(c Card) bool {
		first := n.PerCard[0]
		return c.Shares != first.Shares || c.Unproven() != first.Unproven() ||
			!slices.Equal(c.Profiles, first.Profiles) || c.MemoryMiB != nil && first.MemoryMiB != nil &&
			*c.MemoryMiB != *first.MemoryMiB
	})
}

// allCards counts the cards by the label or by the list of cards, which is always complete.
func (r *reading) allCards() int64 {
	return max(int64(len(r.gpus.PerCard)), value(r.gpus.Cards))
}

// healthyUnits returns what this many healthy cards offer of a resource; false if the node does not show it. Capacity
// includes healthy and unhealthy cards, and equal cards have equal parts of it.
func (r *reading) healthyUnits(name string, healthy int64) (units int64, known bool) {
	resource, err := r.names.Resource(name)
	unproven := []gpuinfo.Kind{gpuinfo.UnknownKind, gpuinfo.WholeUnproven, gpuinfo.MIGUnproven}
	if err != nil || resource.Role == gpuinfo.Information && name != gpuinfo.AliyunCount ||
		slices.Contains(unproven, r.gpus.Kind) {
		return 0, false
	}
	if r.gpus.Differ() {
		return r.healthyShares(name, resource.Role), true
	}
	all := r.allCards()
	if profile := cmp.Or(resource.Profile, value(r.gpus.Profile)); profile != "" || r.gpus.Kind == gpuinfo.MIG {
		if healthy, all, known = r.healthyInstances(profile); !known {
			return 0, false
		}
	}
	return max(r.node.Capacity[name], r.gpus.Units[name]) * healthy / max(all, 1), true
}

// healthyInstances counts on healthy and on all cards the instances of a profile or, without one, the cards without
// instances, if the instances of all cards are known.
func (r *reading) healthyInstances(profile string) (healthy, all int64, known bool) {
	wanted, err := gpuinfo.ParseProfile(profile)
	if err != nil && profile != "" {
		return 0, 0, false
	}
	for _, card := range r.gpus.PerCard {
		if card.Instances == nil {
			return 0, 0, false
		}
		n := int64(0)
		if profile == "" && len(card.Instances) == 0 {
			n++
		}
		for _, instance := range card.Instances {
			name, err := gpuinfo.ParseProfile(instance.Profile)
			if err == nil && profile != "" && name.String() == wanted.String() {
				n++
			}
		}
		if all += n; card.Usable() {
			healthy += n
		}
	}
	return healthy, all, true
}
