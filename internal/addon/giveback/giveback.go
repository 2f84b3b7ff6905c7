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
	// EndGiveBack removes it. With a version of the RayCluster, it removes what that version has
	// (nodepool.ErrConflict); without one, whatever is there.
	EndGiveBack(ctx context.Context, of nodepool.Cluster) error
	// Enqueue requests a cycle.
	Enqueue(key nodepool.ClusterKey)
}

// Desk takes what callers ask for, and lets the next cycle of the RayCluster answer.
type Desk struct {
	writer Writer

	mu   sync.Mutex // guards asks
	asks map[nodepool.ClusterKey][]ask
}

type ask struct {
	giveback.Ask
	ctx    context.Context //nolint:containedctx // the call that waits for the answer
	answer func(giveback.Reservation, error)
}

// New returns a desk.
func New(writer Writer) *Desk {
	return &Desk{writer: writer, asks: map[nodepool.ClusterKey][]ask{}}
}

// Addon returns the feature of the loop.
func (d *Desk) Addon() addon.Addon {
	return addon.Addon{New: func(loop addon.Loop) addon.Feature {
		f := &feature{loop: loop, desk: d}
		return addon.Feature{Observe: f.lookAtOverdue, Launch: f.keepWithoutRoom, AfterDrains: f.serve}
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

// Enqueue requests a cycle.
func (d *Desk) Enqueue(key nodepool.ClusterKey) { d.writer.Enqueue(key) }

// End ends a reservation: the groups may grow again. A drain that has begun is not taken back.
func (d *Desk) End(ctx context.Context, key nodepool.ClusterKey) error {
	return d.writer.EndGiveBack(ctx, nodepool.Cluster{Key: key})
}

// add lets a cycle answer an ask.
func (d *Desk) add(key nodepool.ClusterKey, a ask) {
	d.mu.Lock()
	d.asks[key] = append(d.asks[key], a)
	d.mu.Unlock()
	d.writer.Enqueue(key)
}

func (d *Desk) take(key nodepool.ClusterKey) []ask {
	d.mu.Lock()
	defer d.mu.Unlock()
	asks := d.asks[key]
	delete(d.asks, key)
	return asks
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
	due := slices.DeleteFunc(slices.Clone(v.Members), func(m observe.Member) bool {
		return !r.Has(m.UID) || !m.Joined() || m.Node.Status != raydemand.Draining
	})
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
		in := Input{View: v, Snapshot: &i.Snapshot, Residents: f.residents, Settled: f.loop.Settled}
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
	for _, asked := range f.desk.take(v.Cluster.Key) {
		if asked.ctx.Err() != nil {
			continue // nobody waits for the answer, so nothing may be given back
		}
		reservation, err := f.desk.Agree(ctx, f.loop, o, asked.Ask)
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
	switch err := f.desk.writer.EndGiveBack(ctx, v.Cluster); {
	case errors.Is(err, nodepool.ErrConflict):
		o.LookWithin(time.Second) // another reservation may have followed
		return
	case err != nil:
		const pause = 10 * time.Second
		f.retry = v.Now.Add(pause)
		f.loop.Log().WarnContext(ctx, "cannot end the reservation", "cluster", v.Cluster.Key.String(), "err", err)
		return
	}
	f.loop.Emit(ctx, *v, addon.Event{Reason: addon.ReasonGiveBackEnds,
		Message: "the groups may grow again: " + r.String()})
}

// Agree chooses in a cycle what is given back, and writes it unless the ask is a dry run. Its errors are those of
// Begin; after nodepool.ErrConflict, observe again.
func (d *Desk) Agree(
	ctx context.Context, loop addon.Loop, o *addon.Cycle, wanted giveback.Ask,
) (giveback.Reservation, error) {
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
	in, err := input(ctx, loop, o)
	if err != nil {
		return none, err
	}
	reservation, err := Choose(in, wanted)
	if err != nil || wanted.DryRun {
		return reservation, err
	}
	now, err := loop.Cluster(ctx, v.Cluster.Key)
	if err != nil {
		return none, err
	}
	if !loop.MayWrite(v.Cluster.Key) || !loop.Manages(v.Cluster, now) {
		return none, nodepool.ErrNotLeading
	}
	if err := d.writer.BeginGiveBack(ctx, v.Cluster, &reservation); err != nil {
		return none, err
	}
	v.Cluster.GiveBack = &reservation // for those who ask in the same cycle
	loop.Emit(ctx, *v, addon.Event{Reason: addon.ReasonGiveBackBegins, Message: reservation.String()})
	return reservation, nil
}

// input returns what a choice depends on, or why none can be made now.
func input(ctx context.Context, loop addon.Loop, o *addon.Cycle) (Input, error) {
	if loop.Heavy(&o.Intent.Snapshot) {
		return Input{}, fmt.Errorf("%w: there are too many different requests to plan without some workers",
			giveback.ErrNotNow)
	}
	if why := notNow(loop, o); why != "" {
		return Input{}, fmt.Errorf("%w: %s", giveback.ErrNotNow, why)
	}
	residents, err := addon.Call(ctx, loop, addon.Ray.Residents)
	if err != nil {
		return Input{}, fmt.Errorf("%w: the actors cannot be read: %w", giveback.ErrNotNow, err)
	}
	return Input{View: &o.View, Snapshot: &o.Intent.Snapshot, Residents: residents, UsedFor: loop.UsedFor,
		Settled: loop.Settled}, nil
}

// Offers returns what another RayCluster could take without force, cheapest first, whatever the mode. Of each group,
// all of it could go together.
func (d *Desk) Offers(ctx context.Context, loop addon.Loop, o *addon.Cycle) ([]giveback.Offer, error) {
	in, err := input(ctx, loop, o)
	if err != nil {
		return nil, err
	}
	return Offers(in), nil
}

// notNow returns why nothing can be agreed in this cycle, or "": what is not known for sure may not be drained, and
// while pods are on their way it is not known how many there are.
func notNow(loop addon.Loop, o *addon.Cycle) string {
	v := &o.View
	switch {
	case !v.Live() || loop.Ray() == nil:
		return "Ray does not answer, so nothing shows what its workers do"
	case o.Withheld || len(o.Intent.Launch) > 0:
		return "the RayCluster is just being scaled"
	}
	if why := loop.Paused(*v); why != "" {
		return why
	}
	return loop.OperatorBehind(*v)
}
