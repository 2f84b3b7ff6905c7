package kueue

import (
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// statusDelay is how old the status of a ClusterQueue may be. For as long it may leave out a Workload that got quota,
// and count a slice that was replaced (Kueue v0.18.3 writes it up to 1 s late; times in conditions are whole seconds).
const statusDelay = 3 * time.Second

// othersUse is what Workloads of others have of each resource in a RayCluster's ClusterQueue, as far as its status has
// shown it without doubt.
type othersUse map[flavored]raydemand.Amount

// update returns what others have of a resource, of which so much is reserved, beside the RayCluster's own Workloads.
// While the status may be older than a change of those, others still have what they had, or more if what is reserved is
// more than both; if that is unknown, all that the status does not certainly count of the RayCluster is theirs. So the
// RayCluster waits statusDelay at most for quota that is there.
func (o othersUse) update(of flavored, reserved raydemand.Amount, own workloads, now time.Time) raydemand.Amount {
	doubt, doubtful := false, raydemand.Amount(0)
	for _, w := range own {
		switch {
		case !w.reserved:
		case w.unfinished() && now.Sub(w.reservedAt) >= statusDelay:
			reserved -= w.usesAll(of)
		case w.unfinished() || now.Sub(w.finishedAt) < statusDelay:
			doubt, doubtful = true, doubtful+w.usesAll(of)
		}
	}
	if before, known := o[of]; doubt && known {
		return max(before, reserved-doubtful)
	}
	others := max(0, reserved)
	if !doubt {
		o[of] = others
	}
	return others
}
