package controller

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// rank orders RayClusters: by the priority of their pods, then by age. Priority and age come from the API server, so
// that another process that takes over has the same order.
type rank struct {
	priority int32
	// waits: it has nothing on its way, so what others have comes first.
	waits bool
	// since is when its oldest pod on its way was created, or when this process asked for it if that was before. It is
	// zero if another process asked and no pod exists yet. created is when the RayCluster was.
	since, created time.Time
	// turn is the order in which RayClusters asked in this process. One keeps its turn while it has pods on their way,
	// or waits for room.
	turn int64
}

// rankOf returns the rank of a RayCluster, without its turn.
func rankOf(cluster *nodepool.Cluster, pods []nodepool.Worker) rank {
	r := rank{priority: cluster.Head.Priority, created: cluster.CreatedAt}
	for i := range pods {
		w := &pods[i]
		if onItsWay(w) && (r.since.IsZero() || w.CreatedAt.Before(r.since)) {
			r.since = w.CreatedAt
		}
	}
	return r
}

// onItsWay reports whether a pod still needs room on a node.
func onItsWay(w *nodepool.Worker) bool {
	return !w.Counted && !w.Gated && !w.Terminating && !w.Failed && (!w.Running || w.Uncounted) &&
		!w.CreatedAt.IsZero()
}

// after returns the rank with the age and turn of the one before it, while pods have been on their way ever since.
// Otherwise a RayCluster whose pods the operator creates late would lose its place to one that asked later.
func (r rank) after(known rank) rank {
	r.turn = known.turn
	if !known.waits && !known.since.IsZero() && (r.since.IsZero() || known.since.Before(r.since)) {
		r.since = known.since
	}
	return r
}

// compare returns a negative number if r comes before other.
func (r rank) compare(other rank) int {
	waits := 0
	switch {
	case r.waits && !other.waits:
		waits = 1
	case other.waits && !r.waits:
		waits = -1
	}
	return cmp.Or(cmp.Compare(other.priority, r.priority), waits, r.since.Compare(other.since),
		r.created.Compare(other.created), cmp.Compare(r.turn, other.turn))
}

// promiseLine is the promises of all RayClusters in their order.
type promiseLine struct {
	ranks    []rank
	keys     []nodepool.ClusterKey
	promises []*nodepool.Promise
	// ends has for each rank where its promises end.
	ends []int
}

func lineOf(entries map[nodepool.ClusterKey]promiseEntry) *promiseLine {
	line := &promiseLine{keys: slices.Collect(maps.Keys(entries))}
	slices.SortFunc(line.keys, func(a, b nodepool.ClusterKey) int { return entries[a].compare(entries[b].rank) })
	for _, key := range line.keys {
		e := entries[key]
		line.ranks, line.promises = append(line.ranks, e.rank), append(line.promises, e.promises...)
		line.ends = append(line.ends, len(line.promises))
	}
	return line
}

// before returns the promises of the others that come before a RayCluster with this rank. Appending to them copies.
func (l *promiseLine) before(key nodepool.ClusterKey, own rank) []*nodepool.Promise {
	n, _ := slices.BinarySearchFunc(l.ranks, own, rank.compare)
	if n == 0 {
		return nil
	}
	end := l.ends[n-1]
	if at := slices.Index(l.keys[:n], key); at >= 0 { // its rank has grown since
		begin := 0
		if at > 0 {
			begin = l.ends[at-1]
		}
		return slices.Concat(l.promises[:begin], l.promises[l.ends[at]:end])
	}
	return l.promises[:end:end]
}

// samePromises reports whether promises are of the same pods.
func samePromises(a, b []*nodepool.Promise) bool {
	return slices.EqualFunc(a, b, func(a, b *nodepool.Promise) bool {
		return a.RayCluster == b.RayCluster && a.Group == b.Group && a.Pods == b.Pods &&
			(a.Shape == b.Shape || a.Class == b.Class && a.Class != landing.Key{} &&
				reflect.DeepEqual(a.Shape.Neighbors, b.Shape.Neighbors)) // a class is without them
	})
}
