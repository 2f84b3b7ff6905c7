package controller

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// keptFor is longer than any reading takes.
const keptFor = time.Minute

// formerPromises is what a RayCluster had on its way until a decision that has less of it.
type formerPromises struct {
	promiseEntry
	key   nodepool.ClusterKey
	until time.Time
}

// keep keeps what a RayCluster has on its way, if less of it is left, for readings that have begun. It forgets what is
// too old for them. The caller holds mu.
func (r *promises) keep(key nodepool.ClusterKey, left []nodepool.Promise, now time.Time) {
	old := 0
	for old < len(r.kept) && now.Sub(r.kept[old].until) > keptFor {
		old++
	}
	r.kept = slices.Delete(r.kept, 0, old)
	if n := len(r.kept); n > 0 && now.Before(r.kept[n-1].until) {
		now = r.kept[n-1].until // another decision read the clock later and came first; times stay in their order
	}
	if e := r.entries[key]; anyGrown(left, e.promises) {
		r.kept = append(r.kept, formerPromises{e, key, now})
	}
}

// promisedGroup is a worker group of one of the RayClusters.
type promisedGroup struct {
	key  nodepool.ClusterKey
	name string
}

func promisedGroupOf(p *nodepool.Promise) promisedGroup { return promisedGroup{p.RayCluster, p.Group} }

// addPromise adds pods of a group.
func addPromise(promises []nodepool.Promise, more nodepool.Promise) []nodepool.Promise {
	for i := range promises {
		if promisedGroupOf(&promises[i]) == promisedGroupOf(&more) {
			promises[i].Pods += more.Pods
			return promises
		}
	}
	return append(promises, more)
}

// mostPromised raises each group's promise to that of others. Groups that have none come last. at is where the promise
// of each group is.
func mostPromised(promises, others []nodepool.Promise, at map[promisedGroup]int) []nodepool.Promise {
	for i := range others {
		group := promisedGroupOf(&others[i])
		if k, known := at[group]; !known {
			at[group], promises = len(promises), append(promises, others[i])
		} else if promises[k].Pods < others[i].Pods {
			promises[k] = others[i]
		}
	}
	return promises
}

// anyGrown reports whether some group has more pods on their way now.
func anyGrown(before, now []nodepool.Promise) bool {
	pods := make(map[promisedGroup]int64, len(before))
	for i := range before {
		pods[promisedGroupOf(&before[i])] = before[i].Pods
	}
	return slices.ContainsFunc(now, func(p nodepool.Promise) bool { return p.Pods > pods[promisedGroupOf(&p)] })
}
