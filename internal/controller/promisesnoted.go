package controller

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Note replaces what a RayCluster has on its way by what the API server shows of it. It is for RayClusters about which
// another process decides: their demand is unknown here, so one that only waits has no place among the others.
func (r *promises) Note(cluster *nodepool.Cluster, now time.Time) {
	promises := shownOf(cluster)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(cluster.Key, promises, now)
	if len(promises) == 0 {
		r.leave(cluster.Key)
		return
	}
	r.enter(cluster.Key, rankOf(cluster, cluster.Workers), promises)
}

// shownOf counts the pods that need room by group: those that exist and are on no node yet, and those that the operator
// has not made yet.
func shownOf(cluster *nodepool.Cluster) []nodepool.Promise {
	if !getsPods(cluster) {
		return nil
	}
	live, waiting := map[string]int{}, map[string]int{}
	for i := range cluster.Workers {
		w := &cluster.Workers[i]
		if w.Terminating || w.Failed {
			continue
		}
		live[w.Group]++
		if onItsWay(w) {
			waiting[w.Group]++
		}
	}
	var promises []nodepool.Promise
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		missing := 0
		if observe.Reconciled(*cluster, g.Name) {
			missing = max(0, observe.GoalPods(*g)-live[g.Name])
		}
		if n := int64(waiting[g.Name] + missing); n > 0 {
			promises = append(promises, nodepool.PromiseOf(cluster.Key, g, n))
		}
	}
	return promises
}
