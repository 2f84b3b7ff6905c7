// Package reclaim lets RayClusters of higher priority, the takers, take GPUs from RayClusters that allow it, by
// give-back without force (addon/giveback): no work ends that cannot move, no group goes below minReplicas, and the
// groups are held down until the taker's pods are on nodes or the reservation ends.
//
// A taker looks when its demand or its pods wait because the node pools are full. The others say what they could give
// back, and the taker plans as if it were gone: what is taken is what its pods need, on the very nodes, or nothing. One
// taking concerns one worker group of one RayCluster. What would be taken is shown as a finding of the taker, in all
// modes and with the feature off. The processes of a fleet do not share a Market, so with shards a taker sees the
// RayClusters of its own process alone.
package reclaim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Settings are those of the feature.
type Settings struct {
	// On: GPUs are taken. Otherwise it is only shown what would be.
	On bool
	// PerHour is how many GPUs are taken from one RayCluster within an hour at most.
	PerHour int
	// MinRuntime is how long a worker runs at least before it is taken.
	MinRuntime time.Duration
	// Deadline is how long the work on the workers has to move.
	Deadline time.Duration
}

const (
	// lookEvery is how often a taker asks again what others could give back.
	lookEvery = 10 * time.Second
	// settle is how long demand must wait before GPUs are taken for it: workers that become free serve it first.
	settle = 30 * time.Second
	// hold is how long after the deadline a reservation ends at the latest.
	hold = 10 * time.Minute
	// calm is how long a reservation must serve nobody before it ends, because Ray may show demand late, and nodes the
	// room of a pod that is gone.
	calm = 5 * time.Second
)

// FindingPossible is the code of findings about what would be taken.
const FindingPossible = "reclaim-possible"

// feature is the part of one RayCluster, as a taker and as one that gives.
type feature struct {
	loop   addon.Loop
	market *Market
	// short is since when demand or pods have waited for room, and calm since when what is reserved serves none of
	// them; zero if they do not, or it does.
	short, calm time.Time
	looked      time.Time
	found       *taking
}

// act looks at the RayCluster as a taker, and as one that gives.
func (f *feature) act(ctx context.Context, o *addon.Cycle) {
	v := &o.View
	f.market.note(o)
	f.give(ctx, o)
	room, others := f.look(ctx, o)
	switch due := v.Now.Sub(f.looked) >= lookEvery; {
	case len(others) == 0:
		f.found = nil
	case due, f.found != nil && f.prevented(o) == "": // what is taken is what is missing in this very cycle
		f.found = f.market.choose(room, others, v.Now)
		if due {
			f.looked = v.Now
			f.market.askOffers(others, v.Now)
		}
	}
	f.market.want(v.Cluster.Key, f.found, f.found != nil && f.prevented(o) == "")
	if f.found != nil {
		o.Findings = append(o.Findings, f.finding(o))
		f.take(ctx, o)
	}
}

// look returns from which RayClusters it may take, if it waits for room and nothing is being taken for it.
func (f *feature) look(ctx context.Context, o *addon.Cycle) (room *whatIf, others []nodepool.ClusterKey) {
	v := &o.View
	if v.Mode != nodepool.Managed {
		f.market.wake(v.Cluster.Key)
	}
	if f.market.unused() {
		f.short, f.looked = time.Time{}, time.Time{}
		return nil, nil
	}
	if !v.Live() || v.Mode == nodepool.Off || f.loop.Heavy(&o.Intent.Snapshot) {
		return nil, nil
	}
	room = newWhatIf(o)
	switch short := room.short(); {
	case !short:
		f.short, f.looked = time.Time{}, time.Time{}
	case f.short.IsZero():
		f.short = v.Now
	}
	if givers := f.market.heldFor(v.Cluster.Key); len(givers) > 0 {
		f.hold(ctx, o, room, givers)
		return room, nil
	}
	f.calm = time.Time{}
	if f.short.IsZero() {
		return room, nil
	}
	if others = f.market.lower(v.Cluster.Key); len(others) > 0 {
		o.LookWithin(lookEvery)
	}
	return room, others
}

// hold lets other RayClusters hold down their groups until what they give has served its purpose for a moment: nothing
// waits for room, or their workers are gone, and all pods of the taker that have room are on nodes. Meanwhile, no
// RayCluster of lower priority takes that room.
func (f *feature) hold(ctx context.Context, o *addon.Cycle, room *whatIf, givers []nodepool.ClusterKey) {
	v := &o.View
	o.LookWithin(time.Second)
	leaving, than, unread := f.leaving(ctx, givers)
	snapshot, waits := room.before(than)
	free, after := room.with(snapshot, waits, nil), room.with(snapshot, waits, leaving)
	onWay := unread || len(o.Intent.Launch) > 0 || room.onWay()
	switch serves := onWay || !f.short.IsZero() && (len(leaving) > 0 || !after.none()); {
	case serves:
		f.calm = time.Time{}
	case f.calm.IsZero():
		f.calm = v.Now
	case v.Now.Sub(f.calm) >= calm:
		f.market.rest(v.Cluster.Key)
		return
	}
	o.Awaits = after.beyond(free).launches
}

// leaving returns the workers that RayClusters give back and that are not gone, and the lowest rank of these; unread if
// one of them cannot be read, whose workers may still leave.
func (f *feature) leaving(
	ctx context.Context, givers []nodepool.ClusterKey,
) (workers []giveback.Offer, than rank, unread bool) {
	ranked := false
	for _, key := range givers {
		of, known := f.market.rankOf(key)
		if !known {
			continue
		}
		if !ranked || of.compare(than) < 0 {
			than, ranked = of, true
		}
		cluster, err := f.loop.Cluster(ctx, key)
		unread = unread || err != nil && !errors.Is(err, nodepool.ErrGone)
		for i := range cluster.Workers {
			w := &cluster.Workers[i]
			if g, known := cluster.Group(w.Group); known && g.Kind != nil && cluster.GiveBack.Has(w.UID) {
				workers = append(workers, giveback.Offer{
					Workers: []giveback.OfferedWorker{{Pod: w.Pod, Node: w.Node, Takes: g.Kind.Requests}}})
			}
		}
	}
	return workers, than, unread
}

// give ends the reservation when the taker waits for nothing any more.
func (f *feature) give(ctx context.Context, o *addon.Cycle) {
	v := &o.View
	if v.Mode == nodepool.Managed && f.over(o) && f.loop.MayWrite(v.Cluster.Key) {
		r := v.Cluster.GiveBack
		if err := f.market.desk.End(ctx, v.Cluster.Key); err != nil {
			f.loop.Log().WarnContext(ctx, "cannot end the reservation", "cluster", v.Cluster.Key.String(), "err", err)
			o.LookWithin(lookEvery)
			return
		}
		f.loop.Emit(ctx, *v, addon.Event{Reason: addon.ReasonGiveBackEnds,
			Message: "the groups may grow again, because RayCluster " + r.Taker + " has what it needs: " + r.String()})
	}
}

// over reports whether the taker of the reservation waits for nothing any more. If this process does not know, because
// another shard decides about the taker, the reservation holds until its own end.
func (f *feature) over(o *addon.Cycle) bool {
	r := o.View.Cluster.GiveBack
	if r == nil || r.Taker == "" {
		return false
	}
	namespace, name, _ := strings.Cut(r.Taker, "/")
	return f.market.over(nodepool.ClusterKey{Namespace: namespace, Name: name})
}

// take asks for the GPUs, if they may be taken now.
func (f *feature) take(ctx context.Context, o *addon.Cycle) {
	v, t := &o.View, f.found
	if f.prevented(o) != "" || !f.market.mayAsk(t.from, v.Now) {
		return
	}
	now, err := f.loop.Cluster(ctx, v.Cluster.Key)
	if err != nil || !f.loop.MayWrite(v.Cluster.Key) || !f.loop.Manages(v.Cluster, now) {
		return
	}
	within := min(max(f.market.Deadline, giveback.MinDeadline), giveback.MaxDeadline)
	f.market.ask(ctx, t, giveback.Ask{GPUs: giveback.GPUsOf(t.offers), Group: t.group,
		DeadlineSeconds: int64(within.Seconds()), Until: v.Now.Add(within + hold).UTC().Truncate(time.Second),
		Taker: v.Cluster.Key.String(), Pods: giveback.Pods(t.offers)}, v.Now)
}

// prevented returns why nothing is taken now, or "".
func (f *feature) prevented(o *addon.Cycle) string {
	switch v := &o.View; {
	case !f.market.On:
		return "start Heliostat with --reclaim"
	case v.Mode != nodepool.Managed:
		return "Heliostat takes nothing for it: " + v.Why.Message
	case f.found.why != "":
		return f.found.why
	case v.Now.Sub(f.short) < settle:
		return fmt.Sprintf("Heliostat takes them at %s if the demand still waits then",
			f.short.Add(settle).UTC().Format(time.TimeOnly))
	}
	return ""
}

// finding says what would be taken, and why it is not.
func (f *feature) finding(o *addon.Cycle) raydemand.Finding {
	found := raydemand.Finding{Code: FindingPossible, Severity: raydemand.Info,
		Object: "RayCluster " + o.View.Cluster.Key.String(), Field: "spec"}
	if len(f.found.offers) == 0 {
		found.Why = fmt.Sprintf("RayCluster %s, from which it may take GPUs, offers none: %s", f.found.from,
			f.found.why)
		found.Fix = "Heliostat asks again in " + planner.Span(lookEvery.Seconds())
		return found
	}
	found.Why, found.Fix = f.found.gain(), cmp.Or(f.prevented(o), "Heliostat takes them now")
	return found
}

// taking is what a taker takes, or would take.
type taking struct {
	taker, from nodepool.ClusterKey
	// than is the rank that the other one had.
	than   rank
	group  string
	offers []giveback.Offer
	// launches are the pods that it makes room for and that are not launched yet, waiting those that exist, by group.
	launches, waiting map[string]int64
	// why says what prevents it now; empty if nothing does. Without offers, it says why there are none.
	why string
}

// compareCost compares what two takings cost: the offers with work, then the workers.
func (t *taking) compareCost(o *taking) int {
	busy := func(t *taking) (n int) {
		for i := range t.offers {
			if !t.offers[i].Idle {
				n++
			}
		}
		return n
	}
	return cmp.Or(cmp.Compare(busy(t), busy(o)),
		cmp.Compare(len(giveback.Pods(t.offers)), len(giveback.Pods(o.offers))))
}

// text says what is taken: "2 GPUs from group gpu of RayCluster ml/low (llm-gpu-a: idle)".
func (t *taking) text() string {
	var workers []string
	for _, offer := range t.offers {
		for _, w := range offer.Workers {
			workers = append(workers, w.Pod+": "+offer.Why)
		}
	}
	const named = 5
	if more := len(workers) - named; more > 0 {
		workers = append(workers[:named], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s from group %s of RayCluster %s (%s)", giveback.GPUs(giveback.GPUsOf(t.offers)), t.group,
		t.from, strings.Join(workers, "; "))
}

// gain says what that makes room for.
func (t *taking) gain() string {
	sum := maps.Clone(t.launches)
	for group, n := range t.waiting {
		sum[group] += n
	}
	var pods []string
	for _, group := range slices.Sorted(maps.Keys(sum)) {
		pods = append(pods, planner.Pods(sum[group])+" of group "+group)
	}
	return t.text() + " would make room for " + strings.Join(pods, " and ")
}

// rank orders RayClusters: by the value of the PriorityClass, then by the priority of requests of owners.
type rank struct{ class, request int32 }

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.class, o.class), cmp.Compare(r.request, o.request))
}

// rankOf returns the rank of what a RayCluster has: that of its head pod, and the highest one among its requests. Work
// without a request has the priority 0.
func rankOf(o *addon.Cycle) rank {
	r := rank{class: o.View.Cluster.Head.Priority}
	for _, request := range o.Intent.Snapshot.OwnedRequests {
		r.request = max(r.request, request.Priority)
	}
	return r
}
