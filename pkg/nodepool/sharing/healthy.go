package sharing

import (
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readHealthy finds what the healthy cards offer of each resource, if some cards are known to be unhealthy. A device
// plugin keeps announcing cards whose fault it does not see: NVIDIA's ignores XIDs that it attributes to the
// application, and ECC errors. Without a readable register, nothing of a node of HAMi is known to be healthy.
func (r *reading) readHealthy() {
	if r.unregistered {
		r.gpus.HealthyUnits = map[string]int64{}
		for name := range r.gpus.Units {
			r.gpus.HealthyUnits[name] = 0
		}
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

// healthyShares adds up what healthy cards that differ offer of a resource of HAMi or Volcano.
func (r *reading) healthyShares(name string, role gpuinfo.Role) (units int64) {
	unit, _ := r.gpus.MemoryUnit(name)
	for _, card := range r.gpus.PerCard {
		switch {
		case !card.usable():
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
		return c.Shares != first.Shares || c.UnprovenMiB != first.UnprovenMiB ||
			!slices.Equal(c.Profiles, first.Profiles) || c.MemoryMiB != nil && first.MemoryMiB != nil &&
			*c.MemoryMiB != *first.MemoryMiB
	})
}

// allCards counts the cards by the label or by the list of cards, which is always complete.
func (r *reading) allCards() int64 {
	listed := int64(len(r.gpus.PerCard))
	if r.gpus.Cards != nil {
		return max(listed, *r.gpus.Cards)
	}
	return listed
}

// healthyUnits returns what this many healthy cards offer of a resource; false if the node does not show it.
func (r *reading) healthyUnits(name string, healthy int64) (units int64, known bool) {
	resource, err := r.names.Resource(name)
	if err != nil {
		return 0, false
	}
	if name == gpuinfo.AliyunCount {
		return healthy, true
	}
	switch kind := r.gpus.Kind; {
	case kind == gpuinfo.GPUMemory && resource.Role == gpuinfo.Memory:
		perCard, ok := r.gpus.UnitsPerCard[name]
		return perCard * healthy, ok
	case kind == gpuinfo.GPUMemory && resource.Role == gpuinfo.Cores:
		return 100 * healthy, true
	case kind == gpuinfo.VGPU &&
		(resource.Role == gpuinfo.Devices || resource.Role == gpuinfo.Memory || resource.Role == gpuinfo.Cores):
		if r.gpus.Differ() {
			return r.healthyShares(name, resource.Role), true
		}
		// Equal cards have equally many shares. Capacity includes healthy and unhealthy cards.
		return max(r.node.Capacity[name], r.gpus.Units[name]) / r.allCards() * healthy, true
	case resource.Role != gpuinfo.Devices:
		return 0, false
	}
	replicas, known := r.replicasOf(resource)
	if !known {
		return 0, false
	}
	profile := resource.Profile
	if profile == "" && r.gpus.Profile != nil {
		profile = *r.gpus.Profile
	}
	switch {
	case profile != "":
		units, known = r.healthyInstances(profile)
	case r.gpus.Kind == gpuinfo.MIG:
		units, known = r.healthyUncut()
	default:
		units, known = healthy, r.gpus.Kind != gpuinfo.UnknownKind
	}
	return units * replicas, known
}

// replicasOf returns how many clients share one device of a resource.
func (r *reading) replicasOf(resource gpuinfo.Resource) (replicas int64, known bool) {
	switch {
	case resource.Profile != "":
		profile, err := gpuinfo.ParseProfile(resource.Profile)
		if err != nil {
			return 0, false
		}
		n, ok := r.number(labelMIG + profile.Label() + ".replicas")
		return max(n, 1), ok || !resource.Shared
	case r.gpus.Replicas != nil:
		return max(*r.gpus.Replicas, 1), true
	}
	return 1, r.gpus.Kind == gpuinfo.Whole || r.gpus.Kind == gpuinfo.MIG && !resource.Shared
}

// healthyInstances counts the instances of a profile on healthy cards, if the instances of all cards are known.
func (r *reading) healthyInstances(profile string) (units int64, known bool) {
	wanted, err := gpuinfo.ParseProfile(profile)
	if err != nil {
		return 0, false
	}
	for _, card := range r.gpus.PerCard {
		if card.Instances == nil {
			return 0, false
		}
		if !card.usable() {
			continue
		}
		for _, instance := range card.Instances {
			if name, err := gpuinfo.ParseProfile(instance.Profile); err == nil && name.String() == wanted.String() {
				units++
			}
		}
	}
	return units, true
}

// healthyUncut counts the healthy cards without instances.
func (r *reading) healthyUncut() (units int64, known bool) {
	if slices.ContainsFunc(r.gpus.PerCard, func(c Card) bool { return c.Instances == nil }) {
		return 0, false
	}
	for _, card := range r.gpus.PerCard {
		if card.usable() && len(card.Instances) == 0 {
			units++
		}
	}
	return units, true
}
