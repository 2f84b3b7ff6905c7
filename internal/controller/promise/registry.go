// Package promise keeps what each RayCluster has on its way: pods that are launched and that are on no node yet.
// RayClusters share node pools, so a decision about one leaves the nodes alone that are promised to those before it.
// The package must not plan, and it must not call anything.
package promise

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Registry is the promises of all RayClusters of a process, by their latest decisions. Its zero value is empty and
// ready for use, also by several goroutines.
type Registry struct {
	mu      sync.Mutex // guards entries
	entries map[nodepool.ClusterKey]entry
}

// entry is what one RayCluster has on its way.
type entry struct {
	rank
	promises []nodepool.Promise
}

// rank orders RayClusters: by the priority of their pods, then by who asked first.
type rank struct {
	priority int32
	// since is since when the RayCluster has had pods on their way, or has waited for room, without a break.
	since time.Time
	key   nodepool.ClusterKey
}

// compare returns a negative number if r comes before other.
func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(other.priority, r.priority), r.since.Compare(other.since),
		cmp.Compare(r.key.Namespace, other.key.Namespace), cmp.Compare(r.key.Name, other.key.Name))
}

// Publish replaces what a RayCluster has on its way by what its latest decision says. The decision must not be one that
// could not read the RayCluster.
func (r *Registry) Publish(d *decision.Decision) {
	promises := promisesOf(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(promises) == 0 && !waits(d.Plan) {
		delete(r.entries, d.Cluster)
		return
	}
	since := d.At
	if known, asked := r.entries[d.Cluster]; asked {
		since = known.since
	}
	if r.entries == nil {
		r.entries = map[nodepool.ClusterKey]entry{}
	}
	r.entries[d.Cluster] = entry{rank{d.Kube.Head.Priority, since, d.Cluster}, promises}
}

// Forget drops a RayCluster that is gone.
func (r *Registry) Forget(key nodepool.ClusterKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, key)
}

// Before returns the promises that come before a RayCluster with this priority, in their order. One that has not asked
// yet asks now.
func (r *Registry) Before(key nodepool.ClusterKey, priority int32, now time.Time) []nodepool.Promise {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := rank{priority, now, key}
	if known, asked := r.entries[key]; asked {
		own.since = known.since
	}
	var before []entry
	for other, e := range r.entries {
		if other != key && e.compare(own) < 0 {
			before = append(before, e)
		}
	}
	slices.SortFunc(before, func(a, b entry) int { return a.compare(b.rank) })
	var promises []nodepool.Promise
	for _, e := range before {
		promises = append(promises, e.promises...)
	}
	return promises
}

// promisesOf counts the pods on their way by group: those that exist and are on no node, those that the RayCluster asks
// for and that do not exist yet, and those that the decision has launched. Pods that a scheduling gate holds back need
// no node yet.
func promisesOf(d *decision.Decision) []nodepool.Promise {
	settled := map[string]bool{}
	for i := range d.Kube.Workers {
		w := &d.Kube.Workers[i]
		settled[w.Pod] = w.Node != "" || w.Gated
	}
	counts := launched(d)
	for i := range d.Snapshot.Nodes {
		if n := &d.Snapshot.Nodes[i]; n.State == planner.Pending && !settled[n.Pod] {
			counts[n.Group]++
		}
	}
	var promises []nodepool.Promise
	for i := range d.Kube.Groups {
		g := &d.Kube.Groups[i]
		if n := counts[g.Name]; n > 0 {
			promises = append(promises, nodepool.Promise{RayCluster: d.Cluster, Group: g.Name, Pods: n, Shape: &g.Pod})
		}
	}
	return promises
}

// launched counts the pods that the decision has added.
func launched(d *decision.Decision) map[string]int64 {
	counts := map[string]int64{}
	for _, a := range d.Actions {
		if a.Kind != decision.ActionPatch || a.Result != decision.ResultOK || a.To <= a.From {
			continue
		}
		if g, known := d.Kube.Group(a.Group); known {
			counts[a.Group] += int64(a.To-a.From) * int64(max(g.NumOfHosts, 1))
		}
	}
	return counts
}

// waits reports whether a RayCluster launches nothing for some demand because others come before it.
func waits(plan planner.Plan) bool {
	return slices.ContainsFunc(plan.Groups, func(g planner.GroupPlan) bool {
		return slices.ContainsFunc(g.Reasons, func(r planner.Reason) bool { return r.Code == planner.CodePoolPromised })
	})
}
