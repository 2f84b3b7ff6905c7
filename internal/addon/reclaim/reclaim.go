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
	"heliostat.dev/heliostat/internal/controller/observe"
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
	self   *member
	// short is since when demand or pods have waited for room, and calm since when what is reserved serves none of
	// them; zero if they do not, or it does.
	short, calm time.Time
	looked      time.Time
	found       *taking
}

// endServed lets nothing follow from a reservation whose taker waits for nothing any more, so that give-back ends it.
// If this process does not know the taker, because another shard decides about it, the reservation holds until its own
// end.
func (f *feature) endServed(_ context.Context, v *observe.View) {
	if v.Cluster.GiveBack == nil || v.Cluster.GiveBack.Taker == "" {
		return
	}
	f.market.mu.Lock()
	defer f.market.mu.Unlock()
	namespace, name, _ := strings.Cut(v.Cluster.GiveBack.Taker, "/")
	if taker := f.market.members[nodepool.ClusterKey{Namespace: namespace, Name: name}]; taker != nil && taker.rests {
		v.Cluster.EndGiveBack()
	}
}

// act looks at the RayCluster as one that gives, and as a taker.
func (f *feature) act(ctx context.Context, o *addon.Cycle) {
	v, m := &o.View, f.market
	m.mu.Lock()
	held := m.heldFor(v.Cluster.Key)
	m.note(f.self, o, !f.short.IsZero() || len(held) > 0)
	unused := len(m.members) == 0
	m.mu.Unlock()
	if unused {
		f.short, f.looked, f.found, f.self.wants = time.Time{}, time.Time{}, nil, nil
		return
	}
	f.give(ctx, o)
	if v.Mode != nodepool.Managed {
		m.wake(held)
	}
	room, others := f.look(o, held)
	switch due := v.Now.Sub(f.looked) >= lookEvery; {
	case len(others) == 0:
		f.found = nil
	case due, f.found != nil && f.prevented(o) == "": // what is taken is what is missing in this very cycle
		f.found = m.choose(room, others, v.Now)
		if due {
			f.looked = v.Now
			f.ask(others)
		}
	}
	f.want(o)
}

// give says what the RayCluster could give back, if a taker asks, and gives what one wants.
func (f *feature) give(ctx context.Context, o *addon.Cycle) {
	m, v := f.market, &o.View
	m.mu.Lock()
	asked, t := f.self.asked, m.wanted(f.self, v.Now)
	m.mu.Unlock()
	if asked {
		offers, err := m.desk.Offers(ctx, f.loop, o)
		m.mu.Lock()
		f.self.asked, f.self.offers, f.self.noOffer, f.self.offeredAt = false, offers, "", v.Now
		if err != nil {
			f.self.noOffer = err.Error()
		}
		m.mu.Unlock()
	}
	if t == nil {
		return
	}
	within := min(max(m.Deadline, giveback.MinDeadline), giveback.MaxDeadline)
	r, err := m.desk.Agree(ctx, f.loop, o, giveback.Ask{GPUs: giveback.GPUsOf(t.offers), Group: t.group,
		DeadlineSeconds: int64(within.Seconds()), Until: v.Now.Add(within + hold).UTC().Truncate(time.Second),
		Taker: t.taker.String(), Pods: giveback.Pods(t.offers)})
	if errors.Is(err, nodepool.ErrConflict) {
		o.LookWithin(time.Second)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		f.self.refusedAt, f.self.refusal = v.Now, err.Error()
	} else {
		f.self.gives, f.self.leaving = &r, t.offers
	}
	if taker := m.members[t.taker]; taker != nil { // what it wanted is answered
		taker.wants, taker.rests = nil, taker.rests && err != nil
	}
	m.desk.Enqueue(t.taker)
}

// look returns from which RayClusters it may take, if it waits for room and nothing is being taken for it.
func (f *feature) look(o *addon.Cycle, held []member) (room *whatIf, others []member) {
	v := &o.View
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
	if len(held) > 0 {
		f.hold(o, room, held)
		return room, nil
	}
	f.calm = time.Time{}
	if f.short.IsZero() {
		return room, nil
	}
	f.market.mu.Lock()
	defer f.market.mu.Unlock()
	if others = f.market.lower(f.self); len(others) > 0 {
		o.LookWithin(lookEvery)
	}
	return room, others
}

// hold lets other RayClusters hold down their groups until what they give has served its purpose for a moment: nothing
// waits for room, or their workers are gone, and all pods of the taker that have room are on nodes. Meanwhile, no
// RayCluster of lower priority takes that room.
func (f *feature) hold(o *addon.Cycle, room *whatIf, held []member) {
	v := &o.View
	o.LookWithin(time.Second)
	than, leaving := held[0].rank, []giveback.Offer(nil)
	for i := range held {
		leaving = append(leaving, held[i].leaving...)
		if held[i].compare(than) < 0 {
			than = held[i].rank
		}
	}
	snapshot, waits := room.before(than)
	free, after := room.with(snapshot, waits, nil), room.with(snapshot, waits, leaving)
	onWay := len(o.Intent.Launch) > 0 || room.onWay()
	switch serves := onWay || !f.short.IsZero() && (len(leaving) > 0 || !after.none()); {
	case serves:
		f.calm = time.Time{}
	case f.calm.IsZero():
		f.calm = v.Now
	case v.Now.Sub(f.calm) >= calm:
		f.market.mu.Lock()
		f.self.rests = true
		f.market.mu.Unlock()
		f.market.wake(held)
		return
	}
	o.Awaits = after.beyond(free).launches
}

func (f *feature) ask(others []member) {
	f.market.mu.Lock()
	for i := range others {
		if each := f.market.members[others[i].key]; each != nil {
			each.asked = true
		}
	}
	f.market.mu.Unlock()
	f.market.wake(others)
}

// want shows what would be taken, and wants it if it may be taken now.
func (f *feature) want(o *addon.Cycle) {
	var wants *taking
	if f.found != nil {
		o.Findings = append(o.Findings, f.finding(o))
		if f.prevented(o) == "" {
			wants = f.found
		}
	}
	f.market.mu.Lock()
	f.self.wants = wants
	f.market.mu.Unlock()
	if wants != nil {
		f.market.desk.Enqueue(wants.from)
	}
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
	at          time.Time
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
	busy := func(t *taking) int {
		return len(slices.DeleteFunc(slices.Clone(t.offers), func(o giveback.Offer) bool { return o.Idle }))
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
