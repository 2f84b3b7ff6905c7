// Package giveback gives GPUs back on demand: it chooses the workers whose loss costs least, and keeps the agreement in
// an annotation of the RayCluster (nodepool/giveback). The rest follows from the annotation: its workers count as about
// to go, so addon/departures drains them and the loop names them when they are empty, and a quota holds their groups
// down. This package also ends what is left when the deadline is over, and the reservation itself.
package giveback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Writer writes the annotation.
type Writer interface {
	// BeginGiveBack writes the annotation, if the RayCluster has not changed since it was read (nodepool.ErrConflict).
	BeginGiveBack(ctx context.Context, of nodepool.Cluster, r *giveback.Reservation) error
	// EndGiveBack removes it.
	EndGiveBack(ctx context.Context, key nodepool.ClusterKey) error
	// Enqueue requests a cycle.
	Enqueue(key nodepool.ClusterKey)
}

// Desk takes what callers ask for, and lets the next cycle of the RayCluster answer.
type Desk struct {
	writer Writer

	mu     sync.Mutex // guards all below
	asks   map[nodepool.ClusterKey][]ask
	offers map[nodepool.ClusterKey]func([]giveback.Offer, error)
}

type ask struct {
	giveback.Ask
	// allows returns why nothing may be given back in that cycle. It may be nil.
	allows func(*addon.Cycle) error
	ctx    context.Context //nolint:containedctx // the call that waits for the answer
	answer func(giveback.Reservation, error)
}

// New returns a desk.
func New(writer Writer) *Desk {
	return &Desk{writer: writer, asks: map[nodepool.ClusterKey][]ask{},
		offers: map[nodepool.ClusterKey]func([]giveback.Offer, error){}}
}

// Addon returns the feature of the loop.
func (d *Desk) Addon() addon.Addon {
	return addon.Addon{New: func(loop addon.Loop) addon.Feature {
		f := &feature{loop: loop, desk: d}
		return addon.Feature{Observe: f.lookAtOverdue, Launch: f.keepWithoutRoom, AfterDrains: f.serve}
	}, WithoutCluster: func(_ context.Context, key nodepool.ClusterKey) time.Duration {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.offers, key)
		return 0
	}}
}

// Begin agrees on what is given back, and writes it unless the ask is a dry run. It returns giveback.ErrRefused or
// giveback.ErrNotNow if nothing is agreed.
func (d *Desk) Begin(ctx context.Context, key nodepool.ClusterKey, wanted giveback.Ask) (giveback.Reservation, error) {
	type answer struct {
		reservation giveback.Reservation
		err         error
	}
	answers := make(chan answer, 1)
	d.add(key, ask{Ask: wanted, ctx: ctx,
		answer: func(r giveback.Reservation, err error) { answers <- answer{r, err} }})
	select {
	case a := <-answers:
		return a.reservation, a.err
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		d.asks[key] = slices.DeleteFunc(d.asks[key], func(a ask) bool { return a.ctx == ctx })
		if len(d.asks[key]) == 0 {
			delete(d.asks, key)
		}
		return giveback.Reservation{}, ctx.Err()
	}
}

// Take asks as Begin does, and does not wait: answer is called in a cycle of the RayCluster, unless ctx ends before. In
// that cycle, allows says why nothing may be given back.
func (d *Desk) Take(ctx context.Context, key nodepool.ClusterKey, wanted giveback.Ask,
	allows func(*addon.Cycle) error, answer func(giveback.Reservation, error),
) {
	d.add(key, ask{wanted, allows, ctx, answer})
}

// Offers lets the next cycle of a RayCluster say what it could give back without force, cheapest first. Of each group,
// all that is offered could go together. A later call takes the place of one that is not answered yet.
func (d *Desk) Offers(key nodepool.ClusterKey, answer func([]giveback.Offer, error)) {
	d.mu.Lock()
	d.offers[key] = answer
	d.mu.Unlock()
	d.writer.Enqueue(key)
}

// Enqueue requests a cycle.
func (d *Desk) Enqueue(key nodepool.ClusterKey) { d.writer.Enqueue(key) }

// End ends a reservation: the groups may grow again. A drain that has begun is not taken back.
func (d *Desk) End(ctx context.Context, key nodepool.ClusterKey) error {
	return d.writer.EndGiveBack(ctx, key)
}

// add lets a cycle answer an ask.
func (d *Desk) add(key nodepool.ClusterKey, a ask) {
	d.mu.Lock()
	d.asks[key] = append(d.asks[key], a)
	d.mu.Unlock()
	d.writer.Enqueue(key)
}

func (d *Desk) take(key nodepool.ClusterKey) (asks []ask, offers func([]giveback.Offer, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	asks, offers = d.asks[key], d.offers[key]
	delete(d.asks, key)
	delete(d.offers, key)
	return asks, offers
}

// feature is the desk's part in the loop of one RayCluster.
type feature struct {
	loop   addon.Loop
	desk   *Desk
	looked time.Time
	retry  time.Time
	// overdue are the workers that the last look found with work that may end, and residents the actors that it read.
	overdue   []unit
	residents []raydemand.Resident
	// noRoom are the UIDs of the pods that stay because their work has no room.
	noRoom map[string]bool
}

// lookAtOverdue reads the actors if the deadline of the reservation is over.
func (f *feature) lookAtOverdue(ctx context.Context, v *observe.View) {
	const lookAgain = 5 * time.Second
	r := v.Cluster.GiveBack
	if f.overdue = nil; r == nil {
		f.noRoom = nil
	}
	if r == nil || r.Force || !v.Live() || v.Mode != nodepool.Managed || v.Now.Before(r.Deadline) ||
		f.loop.Ray() == nil || v.Now.Sub(f.looked) < lookAgain {
		return
	}
	var due []observe.Member
	for _, m := range v.Members {
		if r.Has(m.UID) && m.Joined() && m.Node.Status == raydemand.Draining {
			due = append(due, m)
		}
	}
	if len(due) == 0 {
		return
	}
	f.looked, f.noRoom = v.Now, nil
	f.residents = addon.LookAtOverdue(ctx, f.loop, v, due)
	on := addon.ByNode(f.residents)
	for _, m := range due {
		if v.Restartable[m.Node.ID] {
			work, _ := addon.MovableWork(m.Node, on[m.Node.ID])
			f.overdue = append(f.overdue, unit{members: []observe.Member{m}, work: work.Requests})
		}
	}
}

// keepWithoutRoom lets overdue workers stay whose work has no room elsewhere by now.
func (f *feature) keepWithoutRoom(v *observe.View, i *addon.Intent) {
	r := v.Cluster.GiveBack
	if r == nil || r.Force || len(v.Restartable) == 0 {
		return
	}
	var may map[string]bool
	if len(f.overdue) > 0 && !f.loop.Heavy(&i.Snapshot) {
		in := Input{View: v, Snapshot: &i.Snapshot, Residents: f.residents}
		may = in.ending(f.overdue)
	}
	for _, m := range v.Members {
		if r.Has(m.UID) && m.Joined() && v.Restartable[m.Node.ID] && !may[m.Pod] {
			delete(v.Restartable, m.Node.ID)
			if f.noRoom == nil {
				f.noRoom = map[string]bool{}
			}
			f.noRoom[m.UID] = true
		}
	}
}

// stays returns the reservation with the reason why workers stay after the deadline.
func (f *feature) stays(r *giveback.Reservation) *giveback.Reservation {
	if r == nil || len(f.noRoom) == 0 {
		return r
	}
	with := *r
	with.Workers = slices.Clone(r.Workers)
	for i := range with.Workers {
		if w := &with.Workers[i]; f.noRoom[w.UID] {
			w.Why += "; it stays after the deadline, because no other worker has room for its work"
		}
	}
	return &with
}

// serve answers what is asked for, and ends a reservation that is over.
func (f *feature) serve(ctx context.Context, o *addon.Cycle) {
	v := &o.View
	v.Cluster.GiveBack = f.stays(v.Cluster.GiveBack)
	asks, offers := f.desk.take(v.Cluster.Key)
	if offers != nil {
		offers(f.offer(ctx, o))
	}
	for _, asked := range asks {
		if asked.ctx.Err() != nil {
			continue // nobody waits for the answer, so nothing may be given back
		}
		reservation, err := f.agree(ctx, o, &asked)
		if errors.Is(err, nodepool.ErrConflict) {
			f.desk.add(v.Cluster.Key, asked) // the operator wrote the status; the next cycle reads it
			o.LookWithin(time.Second)
			continue
		}
		asked.answer(reservation, err)
	}
	if r := v.Cluster.GiveBack; r != nil {
		for _, at := range []time.Time{r.Until, r.Deadline, r.Deadline.Add(r.LeastDrain())} {
			if at.After(v.Now) {
				o.LookWithin(max(time.Second, at.Sub(v.Now)))
			}
		}
	}
	r := v.Cluster.GiveBackOver
	if r == nil || v.Mode != nodepool.Managed || !f.loop.MayWrite(v.Cluster.Key) || v.Now.Before(f.retry) {
		return
	}
	if err := f.desk.writer.EndGiveBack(ctx, v.Cluster.Key); err != nil {
		const pause = 10 * time.Second
		f.retry = v.Now.Add(pause)
		f.loop.Log().WarnContext(ctx, "cannot end the reservation", "cluster", v.Cluster.Key.String(), "err", err)
		return
	}
	f.loop.Emit(ctx, *v, addon.Event{Reason: addon.ReasonGiveBackEnds,
		Message: "the groups may grow again: " + r.String()})
}

// agree chooses what is given back, and writes it unless the ask is a dry run.
func (f *feature) agree(ctx context.Context, o *addon.Cycle, wanted *ask) (giveback.Reservation, error) {
	v := &o.View
	none := giveback.Reservation{}
	switch {
	case v.Mode != nodepool.Managed:
		return none, fmt.Errorf("%w: %s", nodepool.ErrReadOnly, v.Why.Message)
	case v.Cluster.GiveBack != nil && !wanted.DryRun:
		return none, fmt.Errorf("%w: the RayCluster has a reservation (%s); end it first", giveback.ErrRefused,
			v.Cluster.GiveBack)
	case !wanted.Until.IsZero() && wanted.Until.Before(v.Now.Add(wanted.Within())):
		return none, fmt.Errorf("%w: the reservation would end before its deadline", giveback.ErrRefused)
	}
	if wanted.allows != nil {
		if err := wanted.allows(o); err != nil {
			return none, err
		}
	}
	in, err := f.input(ctx, o)
	if err != nil {
		return none, err
	}
	reservation, err := Choose(in, wanted.Ask)
	if err != nil || wanted.DryRun {
		return reservation, err
	}
	now, err := f.loop.Cluster(ctx, v.Cluster.Key)
	if err != nil {
		return none, err
	}
	if !f.loop.MayWrite(v.Cluster.Key) || !f.loop.Manages(v.Cluster, now) {
		return none, nodepool.ErrNotLeading
	}
	if err := f.desk.writer.BeginGiveBack(ctx, v.Cluster, &reservation); err != nil {
		return none, err
	}
	v.Cluster.GiveBack = &reservation // for those who ask in the same cycle
	f.loop.Emit(ctx, *v, addon.Event{Reason: addon.ReasonGiveBackBegins, Message: reservation.String()})
	return reservation, nil
}

// input returns what a choice depends on, or why none can be made now.
func (f *feature) input(ctx context.Context, o *addon.Cycle) (Input, error) {
	if f.loop.Heavy(&o.Intent.Snapshot) {
		return Input{}, fmt.Errorf("%w: there are too many different requests to plan without some workers",
			giveback.ErrNotNow)
	}
	if why := f.notNow(o); why != "" {
		return Input{}, fmt.Errorf("%w: %s", giveback.ErrNotNow, why)
	}
	residents, err := addon.Residents(ctx, f.loop)
	if err != nil {
		return Input{}, fmt.Errorf("%w: the actors cannot be read: %w", giveback.ErrNotNow, err)
	}
	return Input{View: &o.View, Snapshot: &o.Intent.Snapshot, Residents: residents, UsedFor: f.loop.UsedFor}, nil
}

// offer returns what could be given back without force, whatever the mode.
func (f *feature) offer(ctx context.Context, o *addon.Cycle) ([]giveback.Offer, error) {
	in, err := f.input(ctx, o)
	if err != nil {
		return nil, err
	}
	return Offers(in), nil
}

// notNow returns why nothing can be agreed in this cycle, or "": what is not known for sure may not be drained, and
// while pods are on their way it is not known how many there are.
func (f *feature) notNow(o *addon.Cycle) string {
	v := &o.View
	switch {
	case !v.Live() || f.loop.Ray() == nil:
		return "Ray does not answer, so nothing shows what its workers do"
	case o.Withheld || len(o.Intent.Launch) > 0:
		return "the RayCluster is just being scaled"
	}
	if why := f.loop.Paused(*v); why != "" {
		return why
	}
	return f.loop.OperatorBehind(*v)
}
