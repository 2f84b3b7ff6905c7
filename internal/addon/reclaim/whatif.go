package reclaim

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// whatIf answers which pods of a taker would have room if workers of others were gone.
type whatIf struct {
	view     *observe.View
	snapshot *planner.Snapshot
	plan     *planner.Plan
	// waits counts the pods that exist and that the scheduler cannot place, by group.
	waits map[string]int64
}

// newWhatIf looks at a cycle of the taker. With a capacity policy, pods above the minimum of their group may only wait
// to be kept free, so they do not count.
func newWhatIf(o *addon.Cycle) *whatIf {
	w := &whatIf{view: &o.View, snapshot: &o.Intent.Snapshot, plan: &o.Intent.Plan, waits: map[string]int64{}}
	for i := range o.View.Cluster.Workers {
		if pod := &o.View.Cluster.Workers[i]; needsNode(pod) && pod.Unschedulable != "" {
			w.waits[pod.Group]++
		}
	}
	for i := range w.snapshot.Groups {
		g := &w.snapshot.Groups[i]
		missing := int64(g.Min*g.NumOfHosts) - g.Bound
		switch {
		case w.snapshot.Warm == nil || w.waits[g.Name] <= missing:
		case missing > 0:
			w.waits[g.Name] = missing
		default:
			delete(w.waits, g.Name)
		}
	}
	return w
}

func needsNode(w *nodepool.Worker) bool {
	return w.Node == "" && !w.Gated && !w.Terminating && !w.Failed
}

// short reports whether demand or pods wait because the node pools are full.
func (w *whatIf) short() bool {
	full := func(g planner.GroupPlan) bool {
		return slices.ContainsFunc(g.Reasons, func(r planner.Reason) bool { return r.Code == planner.CodePoolCeiling })
	}
	return len(w.waits) > 0 || capped(w.plan) > 0 && slices.ContainsFunc(w.plan.Groups, full)
}

// capped counts the demand that a limit keeps waiting.
func capped(plan *planner.Plan) (sum int64) {
	for i := range plan.Summary {
		sum += plan.Summary[i].Capped
	}
	return sum
}

// onWay reports whether the scheduler has not decided about a pod yet.
func (w *whatIf) onWay() bool {
	return slices.ContainsFunc(w.view.Cluster.Workers, func(pod nodepool.Worker) bool {
		return needsNode(&pod) && pod.Unschedulable == ""
	})
}

// room is how many pods have room: launches of the plan, and pods that exist, by group. capped is how much demand
// waits.
type room struct {
	launches, waiting map[string]int64
	capped            int64
}

// beyond returns how much more room there is than in base. Pods that are launched in place of others are no room: only
// demand that waits no longer counts.
func (r room) beyond(base room) room {
	more := room{map[string]int64{}, beyond(r.waiting, base.waiting), r.capped - base.capped}
	if more.capped < 0 {
		more.launches = beyond(r.launches, base.launches)
	}
	return more
}

func (r room) none() bool { return len(r.launches)+len(r.waiting) == 0 }

func beyond(now, base map[string]int64) map[string]int64 {
	more := map[string]int64{}
	for group, n := range now {
		if n > base[group] {
			more[group] = n - base[group]
		}
	}
	return more
}

// mostOffered bounds the offers that one choice looks at, and so its plans: most need one for each offer. With very
// many workers of the taker, or kinds of requests, there are fewer, so that a choice takes some tens of milliseconds.
func (w *whatIf) mostOffered() int {
	const least, most, work, perRequest = 8, 64, 80_000, 8
	return max(least, min(most, work/(1+len(w.snapshot.Nodes)+perRequest*len(w.snapshot.Requests))))
}

// fewest returns the fewest offers that make as much room as all of them do, or as much as left GPUs allow. than is the
// rank of the RayCluster that offers: only what comes before it counts. It returns nil if the offers make no room.
func (w *whatIf) fewest(offers []giveback.Offer, left int64, than rank) *taking {
	offers = byNode(offers)
	offers = offers[:min(len(offers), w.mostOffered())]
	snapshot, waits := w.before(than)
	base := w.with(snapshot, waits, nil)
	gain := func(offers []giveback.Offer) room { return w.with(snapshot, waits, offers).beyond(base) }
	all := gain(offers)
	if all.none() {
		return nil
	}
	suffice := func(some []giveback.Offer) bool {
		got := gain(some)
		return got.capped == all.capped && maps.Equal(got.waiting, all.waiting)
	}
	chosen := least(offers, suffice)
	if within := upTo(chosen, left); len(within) < len(chosen) {
		if some := gain(within); !some.none() {
			all = some
			chosen = least(within, suffice)
		}
	}
	all = gain(chosen)
	return &taking{offers: chosen, launches: all.launches, waiting: all.waiting}
}

// byNode sorts offers so that those of one node are together, because a pod needs the room of one node: idle workers
// first, otherwise in the order in which the nodes come.
func byNode(offers []giveback.Offer) []giveback.Offer {
	sorted, at := slices.Clone(offers), map[string]int{}
	for i := range sorted {
		if node := sorted[i].Workers[0].Node; at[node] == 0 {
			at[node] = i + 1
		}
	}
	slices.SortStableFunc(sorted, func(a, b giveback.Offer) int {
		if a.Idle != b.Idle {
			return map[bool]int{true: -1, false: 1}[a.Idle]
		}
		return cmp.Compare(at[a.Workers[0].Node], at[b.Workers[0].Node])
	})
	return sorted
}

// least returns the first offers that suffice, without those that can be left out, beginning with those that cost most.
func least(offers []giveback.Offer, suffice func([]giveback.Offer) bool) []giveback.Offer {
	few := func(more int) bool { return suffice(offers[:more+1]) }
	offers = offers[:min(sort.Search(len(offers), few)+1, len(offers))]
	for i := len(offers) - 1; i >= 0; i-- {
		if without := slices.Delete(slices.Clone(offers), i, i+1); suffice(without) {
			offers = without
		}
	}
	return offers
}

// upTo returns the first offers with so many GPUs at most.
func upTo(offers []giveback.Offer, left int64) (within []giveback.Offer) {
	for _, offer := range offers {
		if giveback.GPUsOf(within)+offer.GPUs <= left {
			within = append(within, offer)
		}
	}
	return within
}

// before returns the snapshot, and the pods that wait, with the demand alone that comes before a rank: all but what a
// capacity policy keeps free if the PriorityClass is lower, otherwise the requests of owners with a higher priority.
// Demand that only waits for earlier pods to join counts as served.
func (w *whatIf) before(than rank) (planner.Snapshot, map[string]int64) {
	s := *w.snapshot
	s.Turn, s.UpscalingMode, s.Policy.MaxInFlight, s.Warm = "", "", 0, nil
	if w.view.Cluster.Head.Priority > than.class {
		return s, w.waits
	}
	s.Demand, s.KeptResources = raydemand.Demand{}, nil
	s.OwnedRequests = slices.DeleteFunc(slices.Clone(s.OwnedRequests),
		func(r raydemand.Owned) bool { return r.Priority <= than.request })
	return s, nil
}

// with returns which pods have room while the workers of some offers are gone.
func (w *whatIf) with(s planner.Snapshot, waits map[string]int64, gone []giveback.Offer) room {
	freed := map[string][]landing.Quantities{}
	for i := range gone {
		for _, worker := range gone[i].Workers {
			freed[worker.Node] = append(freed[worker.Node], worker.Takes)
		}
	}
	cluster := w.view.Cluster
	cluster.Free(freed)
	fresh := planner.SnapshotOf(cluster)
	kinds := map[string]*landing.Pod{}
	for i := range fresh.Groups {
		kinds[fresh.Groups[i].Name] = fresh.Groups[i].Pod
	}
	s.Places, s.Promised, s.Groups = fresh.Places, fresh.Promised, slices.Clone(s.Groups)
	for i := range s.Groups {
		s.Groups[i].Pod = kinds[s.Groups[i].Name]
	}
	r := room{launches: map[string]int64{}, waiting: placed(&cluster, waits)}
	plan := planner.Compute(s, s.Policy)
	for group, n := range plan.Launch {
		r.launches[group] = int64(n)
	}
	r.capped = capped(&plan)
	return r
}

// placed returns how many of the pods that wait have room beside what is promised, by group.
func placed(cluster *nodepool.Cluster, waits map[string]int64) map[string]int64 {
	has := map[string]int64{}
	if len(waits) == 0 || cluster.Stock == nil {
		return has
	}
	var pods []landing.Pod
	number := map[string]int{}
	add := func(pod landing.Pod) int {
		if _, known := number[pod.Name]; !known {
			number[pod.Name] = len(pods)
			pods = append(pods, pod)
		}
		return number[pod.Name]
	}
	for i := range cluster.Groups {
		add(*cluster.Groups[i].Kind)
	}
	for i := range cluster.Promised {
		add(*cluster.Promised[i].Pod)
	}
	on := landing.New(pods, cluster.Places).Empty()
	for i := range cluster.Promised {
		on.Take(add(*cluster.Promised[i].Pod), cluster.Promised[i].Pods)
	}
	for i := range cluster.Groups {
		if n := on.Take(i, waits[cluster.Groups[i].Name]); n > 0 {
			has[cluster.Groups[i].Name] = n
		}
	}
	return has
}
