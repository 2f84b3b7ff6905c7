// Package promise keeps what each RayCluster has on its way: pods that are launched and that are on no node yet.
// RayClusters share node pools, so a decision about one leaves the nodes alone that are promised to those before it.
// The package must not plan, and it must not call anything.
package promise

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Registry is the promises of all RayClusters of a process, by their latest decisions. Its zero value is empty and
// ready for use, also by several goroutines.
type Registry struct {
	mu      sync.Mutex // guards all below
	entries map[nodepool.ClusterKey]entry
	turns   int64 // how many have been given
}

// entry is what one RayCluster has on its way.
type entry struct {
	rank
	promises []nodepool.Promise
}

// rank orders RayClusters: by the priority of their pods, then by who asked first.
type rank struct {
	priority int32
	// turn is the order in which RayClusters asked. One keeps its turn while it has pods on their way, or waits for
	// room.
	turn int64
}

// compare returns a negative number if r comes before other.
func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(other.priority, r.priority), cmp.Compare(r.turn, other.turn))
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
	r.enter(d.Cluster, d.Kube.Head.Priority, promises)
}

// enter replaces what a RayCluster has on its way. The caller holds mu.
func (r *Registry) enter(key nodepool.ClusterKey, priority int32, promises []nodepool.Promise) {
	known, asked := r.entries[key]
	if !asked {
		r.turns++
		known.turn = r.turns
	}
	if r.entries == nil {
		r.entries = map[nodepool.ClusterKey]entry{}
	}
	r.entries[key] = entry{rank{priority, known.turn}, promises}
}

// Reserve adds pods that a RayCluster is about to launch, by group, to what it has on its way, until its decision is
// published. It does nothing and reports false if more comes before them by now than the plan that launches them knew.
func (r *Registry) Reserve(cluster *nodepool.Cluster, launch map[string]int, before []nodepool.Promise) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if grown(before, r.before(cluster.Key, cluster.Head.Priority)) {
		return false
	}
	promises := slices.Clone(r.entries[cluster.Key].promises)
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		if n := int64(launch[g.Name]); n > 0 {
			promises = add(promises, nodepool.Promise{RayCluster: cluster.Key, Group: g.Name, Pods: n, Shape: &g.Pod})
		}
	}
	r.enter(cluster.Key, cluster.Head.Priority, promises)
	return true
}

// add adds pods of a group.
func add(promises []nodepool.Promise, more nodepool.Promise) []nodepool.Promise {
	for i := range promises {
		if promises[i].Group == more.Group {
			promises[i].Pods += more.Pods
			return promises
		}
	}
	return append(promises, more)
}

// grown reports whether some group has more pods on their way now.
func grown(before, now []nodepool.Promise) bool {
	type group struct {
		key  nodepool.ClusterKey
		name string
	}
	pods := make(map[group]int64, len(before))
	for i := range before {
		pods[group{before[i].RayCluster, before[i].Group}] = before[i].Pods
	}
	return slices.ContainsFunc(
		now,
		func(p nodepool.Promise) bool { return p.Pods > pods[group{p.RayCluster, p.Group}] },
	)
}

// Forget drops a RayCluster that is gone.
func (r *Registry) Forget(key nodepool.ClusterKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, key)
}

// Before returns the promises that come before a RayCluster with this priority, in their order. One that has not asked
// yet comes after all others of its priority.
func (r *Registry) Before(key nodepool.ClusterKey, priority int32) []nodepool.Promise {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.before(key, priority)
}

// before does the same. The caller holds mu.
func (r *Registry) before(key nodepool.ClusterKey, priority int32) []nodepool.Promise {
	own := rank{priority, math.MaxInt64}
	if known, asked := r.entries[key]; asked {
		own.turn = known.turn
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

// promisesOf counts the pods on their way by group: those that exist and are not part of what pods take of the nodes,
// those that the RayCluster asks for and that do not exist yet, and those that the decision has launched. Pods that a
// scheduling gate holds back need no node yet.
func promisesOf(d *decision.Decision) []nodepool.Promise {
	settled := map[string]bool{}
	for i := range d.Kube.Workers {
		w := &d.Kube.Workers[i]
		settled[w.Pod] = w.Counted || w.Gated
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
