package observe

import (
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Clocks remembers since when pods and demand are in their present state. It only delays reductions, so losing it is
// safe.
type Clocks struct {
	unjoined map[string]time.Time // pod → first seen without a Ray node
	dead     map[string]time.Time // pod → first seen with a dead Ray node
	going    map[string]time.Time // pod → first seen as about to lose its machine
	// quiet is since when nothing is requested and no node is about to lose its machine; zero while something is.
	quiet time.Time
}

// Observe adds one complete reading. kept says whether anything is requested over REST.
func (w *Clocks) Observe(now time.Time, members []Member, demand raydemand.Demand, kept bool) {
	unjoined, dead, going := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	moving := false // a replacement for the work of such a node is needed, though nothing is requested
	for _, m := range members {
		moving = moving || m.Goes() && m.Joined()
		if m.Goes() {
			going[m.Pod] = earlier(w.going, m.Pod, now)
		}
		switch {
		case m.Dead():
			dead[m.Pod] = earlier(w.dead, m.Pod, now)
		case m.Node == nil:
			unjoined[m.Pod] = earlier(w.unjoined, m.Pod, now)
		}
	}
	w.unjoined, w.dead, w.going = unjoined, dead, going
	switch {
	case kept || moving || len(demand.Requests)+len(demand.Gangs)+len(demand.Constraint) > 0:
		w.quiet = time.Time{}
	case w.quiet.IsZero():
		w.quiet = now
	}
}

// Pause restarts all clocks after a missing reading, during which nothing was observed.
func (w *Clocks) Pause() { *w = Clocks{} }

func (w *Clocks) UnjoinedFor(pod string, now time.Time) time.Duration {
	return lasted(w.unjoined[pod], now)
}

func (w *Clocks) DeadFor(pod string, now time.Time) time.Duration { return lasted(w.dead[pod], now) }

func (w *Clocks) GoingFor(pod string, now time.Time) time.Duration { return lasted(w.going[pod], now) }

func (w *Clocks) QuietFor(now time.Time) time.Duration { return lasted(w.quiet, now) }

func earlier(known map[string]time.Time, name string, now time.Time) time.Time {
	if at, ok := known[name]; ok {
		return at
	}
	return now
}

func lasted(since, now time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return now.Sub(since)
}

// Use is what a node shows of its use.
type Use uint8

const (
	// Unused: nothing is in use.
	Unused Use = iota
	// InUse: something is in use, but no task or actor runs. A placement group reserves it, or work is being placed.
	InUse
	// Works: tasks or actors run.
	Works
)

// UseOf returns what a node shows.
func UseOf(n *raydemand.Node) Use {
	switch {
	case n.Status == raydemand.Idle:
		return Unused
	case raydemand.ReadActivity(n.Activity).Workers:
		return Works
	}
	return InUse
}
