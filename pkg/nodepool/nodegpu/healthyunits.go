package nodegpu

import (
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readWell finds what the cards that are well give of each resource, where some are known not to be. A device plugin
// goes on announcing cards whose fault it does not see: NVIDIA's passes over the XIDs that it takes for the
// application's, and counts no ECC errors.
func (r *reading) readWell() {
	ill := r.gpus.ill()
	if ill == 0 {
		return
	}
	for name, units := range r.gpus.Units {
		if well, known := r.wellUnits(name, r.allCards()-ill); known && well < units {
			if r.gpus.WellUnits == nil {
				r.gpus.WellUnits = map[string]int64{}
			}
			r.gpus.WellUnits[name] = well
		}
	}
}

// allCards counts the cards by the label or by the list of them: who lists cards lists all.
func (r *reading) allCards() int64 {
	listed := int64(len(r.gpus.PerCard))
	if r.gpus.Cards != nil {
		return max(listed, *r.gpus.Cards)
	}
	return listed
}

// wellUnits is what so many cards that are well give of a resource; false where the node does not tell.
func (r *reading) wellUnits(name string, well int64) (units int64, known bool) {
	resource, err := r.names.Resource(name)
	if err != nil {
		return 0, false
	}
	if name == gpuinfo.AliyunCount {
		return well, true
	}
	switch kind := r.gpus.Kind; {
	case kind == gpuinfo.GPUMemory && resource.Role == gpuinfo.Memory:
		perCard, told := r.gpus.UnitsPerCard[name]
		return perCard * well, told
	case kind == gpuinfo.GPUMemory && resource.Role == gpuinfo.Cores:
		return 100 * well, true
	case kind == gpuinfo.VGPU &&
		(resource.Role == gpuinfo.Devices || resource.Role == gpuinfo.Memory || resource.Role == gpuinfo.Cores):
		// Shares are as many on each card, and healthy and unhealthy ones make up capacity.
		return max(r.node.Capacity[name], r.gpus.Units[name]) / r.allCards() * well, true
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
		units, known = r.wellInstances(profile)
	case r.gpus.Kind == gpuinfo.MIG:
		units, known = r.wellUncut()
	default:
		units, known = well, r.gpus.Kind != gpuinfo.UnknownKind
	}
	return units * replicas, known
}

// replicasOf is how many share one device of a resource.
func (r *reading) replicasOf(resource gpuinfo.Resource) (replicas int64, known bool) {
	switch {
	case resource.Profile != "":
		profile, err := gpuinfo.ParseProfile(resource.Profile)
		if err != nil {
			return 0, false
		}
		n, told := r.number(labelMIG + profile.Label() + ".replicas")
		return max(n, 1), told || !resource.Shared
	case r.gpus.Replicas != nil:
		return max(*r.gpus.Replicas, 1), true
	}
	return 1, r.gpus.Kind == gpuinfo.Whole || r.gpus.Kind == gpuinfo.MIG && !resource.Shared
}

// wellInstances counts the instances of a profile on cards that are well, where all cards tell theirs.
func (r *reading) wellInstances(profile string) (units int64, known bool) {
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

// wellUncut counts the cards without instances that are well.
func (r *reading) wellUncut() (units int64, known bool) {
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
