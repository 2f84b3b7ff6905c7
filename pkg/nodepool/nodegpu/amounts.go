package nodegpu

import (
	"fmt"
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// The most units of one resource that a node can announce. The kubelet takes the name of every device in one gRPC
// message of at most 16 MiB, of which a name takes more than 16 bytes; amounts of memory may be counted in bytes.
const (
	mostDevices = 1 << 20
	mostAmount  = 1 << 50
)

// most is the most units of a resource that a node can announce; false where the name is none of a GPU.
func (g Reader) most(name string) (units int64, isGPU bool) {
	switch resource, err := g.Names.Resource(name); {
	case err == nil:
		return MostUnits(resource), true
	case isUnknownGPU(err):
		return mostAmount, true
	}
	return 0, false
}

func MostUnits(resource gpuinfo.Resource) int64 {
	if resource.Role == gpuinfo.Devices {
		return mostDevices
	}
	return mostAmount
}

// CanAnnounce reports whether the node shows a readable amount of an extended resource as allocatable, and one that a
// node can have.
func (g Reader) CanAnnounce(node NodeObject, name string) bool {
	n, shown := node.Allocatable[name]
	most, isGPU := g.most(name)
	return shown && n >= 0 && (!isGPU || n <= most)
}

// plausible leaves out the amounts of GPU resources that no node can have, and tells them: they would be taken for
// cards, and added up.
func (r *reading) plausible(field string, shown map[string]int64) map[string]int64 {
	var kept map[string]int64
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		n := shown[name]
		most, isGPU := Reader{Names: r.names}.most(name)
		if !isGPU || n >= 0 && n <= most {
			continue
		}
		r.problem(AmountUnreadable,
			fmt.Sprintf("status.%s[%s] is %d: want 0 to %d; it counts as not announced", field, name, n, most))
		if kept == nil {
			kept = maps.Clone(shown)
		}
		delete(kept, name)
	}
	if kept == nil {
		return shown
	}
	return kept
}
