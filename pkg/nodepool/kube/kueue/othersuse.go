package kueue

import (
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// statusDelay is how old the status of a ClusterQueue may be. For as long it may leave out a Workload that got quota,
// and count a slice that was replaced (Kueue v0.18.3 writes it up to 1 s late; times in conditions are whole seconds).
const statusDelay = 3 * time.Second

// othersUse is what Workloads of others have of each resource in a RayCluster's ClusterQueue, as far as its status has
// shown it without doubt.
type othersUse map[flavored]raydemand.Amount

// update returns what others have of a resource, of which so much is reserved. counted is what the status may count of
// the RayCluster's own Workloads. In doubt, others still have what they had; if the status contradicts that, they have
// as much as it allows. So the RayCluster never counts on quota that is not there, and waits statusDelay at most for
// quota that is.
func (o othersUse) update(of flavored, reserved raydemand.Amount, counted []raydemand.Amount) raydemand.Amount {
	if before, known := o[of]; len(counted) > 1 && known && slices.Contains(counted, reserved-before) {
		return before
	}
	others := max(0, reserved-slices.Min(counted))
	if len(counted) == 1 {
		o[of] = others
	}
	return others
}

// counted returns what the status of a ClusterQueue may count of a resource for the RayCluster's Workloads: more than
// one amount while it may be older than their changes. Slices replace each other one by one, and Kueue counts one until
// it counts the next, so those in doubt count from one of them to another one.
func (all workloads) counted(of flavored, now time.Time) []raydemand.Amount {
	var certain raydemand.Amount
	var doubtful []*workload
	gone, came := false, false
	for _, w := range all {
		switch {
		case !w.reserved || !w.unfinished() && now.Sub(w.finishedAt) >= statusDelay:
		case w.unfinished() && now.Sub(w.reservedAt) >= statusDelay:
			certain += w.usesAll(of)
		default:
			doubtful = append(doubtful, w)
			gone, came = gone || !w.unfinished(), came || w.unfinished()
		}
	}
	slices.SortFunc(doubtful, func(a, b *workload) int {
		switch {
		case a.newer(b):
			return 1
		case b.newer(a):
			return -1
		}
		return strings.Compare(a.name, b.name)
	})
	var sums []raydemand.Amount
	if !gone || !came {
		sums = append(sums, certain)
	}
	for i := range doubtful {
		sum := certain
		for _, w := range doubtful[i:] {
			sum += w.usesAll(of)
			sums = append(sums, sum)
		}
	}
	slices.Sort(sums)
	return slices.Compact(sums)
}
