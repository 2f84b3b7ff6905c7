package promise

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// keptFor is longer than any reading takes.
const keptFor = time.Minute

// former is what a RayCluster had on its way until a decision that has less of it.
type former struct {
	entry
	key   nodepool.ClusterKey
	until time.Time
}

// keep keeps what a RayCluster has on its way, if less of it is left, for readings that have begun. It forgets what is
// too old for them. The caller holds mu.
func (r *Registry) keep(key nodepool.ClusterKey, left []nodepool.Promise, now time.Time) {
	old := 0
	for old < len(r.kept) && now.Sub(r.kept[old].until) > keptFor {
		old++
	}
	r.kept = slices.Delete(r.kept, 0, old)
	if n := len(r.kept); n > 0 && now.Before(r.kept[n-1].until) {
		now = r.kept[n-1].until // another decision read the clock later and came first; times stay in their order
	}
	if e := r.entries[key]; grown(left, e.promises) {
		r.kept = append(r.kept, former{e, key, now})
	}
}

// group is a worker group of one of the RayClusters.
type group struct {
	key  nodepool.ClusterKey
	name string
}

func groupOf(p *nodepool.Promise) group { return group{p.RayCluster, p.Group} }

// add adds pods of a group.
func add(promises []nodepool.Promise, more nodepool.Promise) []nodepool.Promise {
	for i := range promises {
		if groupOf(&promises[i]) == groupOf(&more) {
			promises[i].Pods += more.Pods
			return promises
		}
	}
	return append(promises, more)
}

// most raises each group's promise to that of others. Groups that have none come last.
func most(promises, others []nodepool.Promise) []nodepool.Promise {
	for _, other := range others {
		same := func(p nodepool.Promise) bool { return groupOf(&p) == groupOf(&other) }
		if i := slices.IndexFunc(promises, same); i < 0 {
			promises = append(promises, other)
		} else if promises[i].Pods < other.Pods {
			promises[i] = other
		}
	}
	return promises
}

// grown reports whether some group has more pods on their way now.
func grown(before, now []nodepool.Promise) bool {
	pods := make(map[group]int64, len(before))
	for i := range before {
		pods[groupOf(&before[i])] = before[i].Pods
	}
	return slices.ContainsFunc(now, func(p nodepool.Promise) bool { return p.Pods > pods[groupOf(&p)] })
}
