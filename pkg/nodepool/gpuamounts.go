package nodepool

import (
	"fmt"
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// The most units of one resource that a node can announce. The kubelet takes the name of every device in one gRPC message of at most 16 MiB, of which
// a name takes more than 16 bytes; amounts of memory may be counted in bytes.
const (
	mostDevices = 1 << 20
	mostAmount  = 1 << 50
)

// plausible leaves out the amounts of GPU resources that no node can have, and tells them: they would be taken for cards, and added up.
func (r *gpuReading) plausible(field string, shown map[string]int64) map[string]int64 {
	var kept map[string]int64
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		n := shown[name]
		most := int64(mostAmount)
		resource, err := r.names.Resource(name)
		if err == nil && resource.Role == gpuinfo.Devices {
			most = mostDevices
		}
		if n >= 0 && n <= most || err != nil && !isUnknownGPU(err) {
			continue
		}
		r.problem(AmountUnreadable, fmt.Sprintf("status.%s[%s] is %d: want 0 to %d; it counts as not announced", field, name, n, most))
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
