package controller

import (
	"math"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// promises is what all RayClusters of a process have on their way, by their latest decisions: pods that are launched
// and on no node yet. RayClusters share node pools, so a decision about one leaves the nodes alone that are promised to
// those before it. Its zero value is empty and ready for use, also by several goroutines.
type promises struct {
	mu      sync.Mutex // guards all below
	entries map[nodepool.ClusterKey]promiseEntry
	turns   int64 // how many have been given
	kept    []formerPromises
	// line is the entries in their order; nil after a change. Readings share its promises, so they are not changed.
	line *promiseLine
}

// promiseEntry is what one RayCluster has on its way.
type promiseEntry struct {
	rank
	promises []*nodepool.Promise
}

// Publish replaces what a RayCluster has on its way by what its latest decision says. The decision must not be one that
// could not read the RayCluster.
func (r *promises) Publish(d *addon.Decision, now time.Time) {
	promises := promisesOf(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(d.Cluster, promises, now)
	if len(promises) == 0 && !waitsForOthers(d.Plan) {
		r.leave(d.Cluster)
		return
	}
	r.enter(d.Cluster, rankOf(&d.Kube, d.Pods.Get()), promises)
}

// enter replaces what a RayCluster has on its way. The caller holds mu.
func (r *promises) enter(key nodepool.ClusterKey, place rank, promises []*nodepool.Promise) {
	if known, asked := r.entries[key]; asked {
		place = place.after(known.rank)
	} else {
		r.turns++
		place.turn = r.turns
	}
	if place.waits = len(promises) == 0; r.entries == nil {
		r.entries = map[nodepool.ClusterKey]promiseEntry{}
	}
	if known, asked := r.entries[key]; !asked || known.rank != place || !samePromises(known.promises, promises) {
		r.entries[key], r.line = promiseEntry{place, promises}, nil
	}
}

// leave drops what a RayCluster has on its way, and its place. The caller holds mu.
func (r *promises) leave(key nodepool.ClusterKey) {
	if _, asked := r.entries[key]; asked {
		delete(r.entries, key)
		r.line = nil
	}
}

// Reserve adds pods that a RayCluster is about to launch, by group, to what it has on its way, until its decision is
// published; readAt is when its reading began. It does nothing and reports false if more comes before them by now than
// the plan that launches them knew.
func (r *promises) Reserve(
	cluster *nodepool.Cluster, launch map[string]int, before []*nodepool.Promise, readAt time.Time,
) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if anyGrown(before, r.before(cluster, readAt)) {
		return false
	}
	promises := slices.Clone(r.entries[cluster.Key].promises)
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		if n := int64(launch[g.Name]); n > 0 {
			promises = addPromise(promises, nodepool.PromiseOf(cluster.Key, g, n))
		}
	}
	place := rankOf(cluster, cluster.Workers)
	if known := r.entries[cluster.Key]; place.since.IsZero() && (known.waits || len(known.promises) == 0) {
		place.since = readAt
	}
	r.enter(cluster.Key, place, promises)
	return true
}

// Forget drops a RayCluster that is gone.
func (r *promises) Forget(key nodepool.ClusterKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave(key)
}

// Before returns the promises that come before a RayCluster, in their order. One that has neither asked nor pods on
// their way comes after all others of its priority. What was on its way when the RayCluster's reading began counts too:
// that reading may show the nodes as they were before those pods arrived. The result must not be changed.
func (r *promises) Before(cluster *nodepool.Cluster, readAt time.Time) []*nodepool.Promise {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.before(cluster, readAt)
}

// before does the same. The caller holds mu.
func (r *promises) before(cluster *nodepool.Cluster, readAt time.Time) []*nodepool.Promise {
	key, own := cluster.Key, rankOf(cluster, cluster.Workers)
	if known, asked := r.entries[key]; asked {
		own.waits = known.waits && own.since.IsZero()
		own = own.after(known.rank)
	} else {
		own.turn, own.waits = math.MaxInt64, own.since.IsZero()
	}
	if r.line == nil {
		r.line = lineOf(r.entries)
	}
	promises, shared := r.line.before(key, own), true
	for i := len(r.kept) - 1; i >= 0 && !r.kept[i].until.Before(readAt); i-- {
		if f := &r.kept[i]; f.key != key && f.compare(own) < 0 {
			if shared {
				promises, shared = slices.Clone(promises), false
			}
			promises = mostPromised(promises, f.promises)
		}
	}
	return promises
}

// promisesOf counts the pods on their way, by group: a head that has no node, pods that exist and are not part of what
// pods take of the nodes, those that the RayCluster asks for and that do not exist yet, and those that the decision has
// launched, and those for which others make room. Pods that a scheduling gate holds back need no node yet.
func promisesOf(d *addon.Decision) []*nodepool.Promise {
	if !getsPods(&d.Kube) {
		return nil
	}
	counts, pods := launchedPods(d), d.Pods.Get()
	for group, n := range d.Awaits {
		counts[group] += n
	}
	if slices.ContainsFunc(d.Snapshot.Nodes, func(n planner.Node) bool { return n.State == planner.Pending }) ||
		slices.ContainsFunc(pods, func(w nodepool.Worker) bool { return w.Uncounted }) {
		settled, uncounted := map[string]bool{}, map[string]bool{}
		for i := range pods {
			w := &pods[i]
			settled[w.Pod], uncounted[w.Pod] = w.Counted || w.Gated, w.Uncounted
		}
		for i := range d.Snapshot.Nodes {
			n := &d.Snapshot.Nodes[i]
			if n.State == planner.Pending && !settled[n.Pod] || uncounted[n.Pod] {
				counts[n.Group]++
			}
		}
	}
	var promises []*nodepool.Promise
	if head, waits := d.Kube.HeadPromise(); waits {
		promises = append(promises, head)
	}
	for i := range d.Kube.Groups {
		g := &d.Kube.Groups[i]
		if n := counts[g.Name]; n > 0 {
			promises = append(promises, nodepool.PromiseOf(d.Cluster, g, n))
		}
	}
	return promises
}

// getsPods reports whether the operator of this Kubernetes cluster makes pods of the RayCluster at all, whatever its
// replicas say. One that waits suspended in a queue of Kueue gets none, and must not hold free nodes all that time.
func getsPods(cluster *nodepool.Cluster) bool {
	return !cluster.Suspended && !cluster.Deleting && !cluster.ManagedElsewhere
}

// launchedPods counts the pods that the decision has added.
func launchedPods(d *addon.Decision) map[string]int64 {
	counts := map[string]int64{}
	for _, a := range d.Actions {
		if a.Kind != addon.ActionPatch || a.Result != addon.ResultOK || a.To <= a.From {
			continue
		}
		if g, known := d.Kube.Group(a.Group); known {
			counts[a.Group] += int64(a.To-a.From) * int64(max(g.NumOfHosts, 1))
		}
	}
	return counts
}

// waitsForOthers reports whether a RayCluster launches nothing for some demand because others come before it.
func waitsForOthers(plan planner.Plan) bool {
	return slices.ContainsFunc(plan.Groups, func(g planner.GroupPlan) bool {
		return slices.ContainsFunc(g.Reasons, func(r planner.Reason) bool { return r.Code == planner.CodePoolPromised })
	})
}

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
func (r *promises) keep(key nodepool.ClusterKey, left []*nodepool.Promise, now time.Time) {
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

func addPromise(promises []*nodepool.Promise, more *nodepool.Promise) []*nodepool.Promise {
	for i, p := range promises {
		if promisedGroupOf(p) == promisedGroupOf(more) {
			sum := *p
			sum.Pods += more.Pods
			promises[i] = &sum
			return promises
		}
	}
	return append(promises, more)
}

// mostPromised raises each group's promise to that of others. Groups that have none come last.
func mostPromised(promises, others []*nodepool.Promise) []*nodepool.Promise {
	for _, other := range others {
		group := promisedGroupOf(other)
		at := slices.IndexFunc(promises, func(p *nodepool.Promise) bool { return promisedGroupOf(p) == group })
		if at < 0 {
			promises = append(promises, other)
		} else if promises[at].Pods < other.Pods {
			promises[at] = other
		}
	}
	return promises
}

// anyGrown reports whether some group has more pods on their way now.
func anyGrown(before, now []*nodepool.Promise) bool {
	if slices.Equal(before, now) { // promises that do not change are the same ones
		return false
	}
	pods := make(map[promisedGroup]int64, len(before))
	for _, p := range before {
		pods[promisedGroupOf(p)] = p.Pods
	}
	return slices.ContainsFunc(now, func(p *nodepool.Promise) bool { return p.Pods > pods[promisedGroupOf(p)] })
}

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
func shownOf(cluster *nodepool.Cluster) []*nodepool.Promise {
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
	var promises []*nodepool.Promise
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
