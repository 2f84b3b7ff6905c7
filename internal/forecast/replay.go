package forecast

import (
	"slices"
	"time"
)

// Group is what the model of a worker group knows of it.
type Group struct {
	// Start is how long a worker takes until work can run on it, IdleTimeout how long it may be idle before it goes.
	Start, IdleTimeout time.Duration
	// Min and Max bound the number of workers; a Max of 0 is no bound.
	Min, Max int
}

// Outcome is what a worker group had and lacked, in hours of one worker: an hour of two workers is two hours.
type Outcome struct {
	// Paid is the time of all workers, from when they were asked for. Idle is the part in which they had started and
	// were not needed.
	Paid, Idle float64
	// Waited is how long demand waited for workers, Needed how long it was there.
	Waited, Needed float64
	// Starts is how many workers were started.
	Starts int
}

// Minus returns the difference of two outcomes.
func (o Outcome) Minus(p Outcome) Outcome {
	return Outcome{o.Paid - p.Paid, o.Idle - p.Idle, o.Waited - p.Waited, o.Needed - p.Needed, o.Starts - p.Starts}
}

// Replay runs a simple model of a worker group: at the beginning of each step, workers are started up to the demand, or
// up to what keep says if that is more. They are paid from then on, and ready one start time later. Those that are
// neither needed nor kept go after the idle timeout. Demand is constant within a step, and a negative one is unknown:
// nothing is counted in such a step. keep may be nil.
func Replay(step time.Duration, demand []int32, g Group, keep func(i int) int) Outcome {
	m := model{group: g}
	for i, needed := range demand {
		kept := 0
		if keep != nil {
			kept = keep(i)
		}
		m.counts = needed >= 0
		m.needed = g.within(max(int(needed), 0))
		m.kept = max(g.within(kept), g.Min)
		m.ask()
		m.pass(m.now + step)
	}
	return m.outcome
}

func (g Group) within(workers int) int {
	if g.Max > 0 {
		workers = min(workers, g.Max)
	}
	return workers
}

// model is the group at a moment, as the time since the beginning.
type model struct {
	group        Group
	now          time.Duration
	needed, kept int
	counts       bool
	ready        int
	// starting are the workers on their way, by when they are ready. idle is since when each idle worker is, the one
	// that is idle for the longest first; work goes to the last of them.
	starting []batch
	idle     []batch
	outcome  Outcome
}

// batch is workers with a common moment.
type batch struct {
	at      time.Duration
	workers int
}

func sum(batches []batch) (workers int) {
	for _, b := range batches {
		workers += b.workers
	}
	return workers
}

// ask starts the workers that are missing.
func (m *model) ask() {
	if missing := max(m.needed, m.kept) - m.ready - sum(m.starting); missing > 0 {
		m.starting = append(m.starting, batch{m.now + m.group.Start, missing})
		if m.counts {
			m.outcome.Starts += missing
		}
	}
	m.arrive()
}

// arrive makes those ready that have started.
func (m *model) arrive() {
	for len(m.starting) > 0 && m.starting[0].at <= m.now {
		m.ready += m.starting[0].workers
		m.starting = m.starting[1:]
	}
	m.settle()
}

// settle gives work to idle workers, or makes those idle that are not needed.
func (m *model) settle() {
	surplus := max(m.ready-m.needed, 0)
	idle := sum(m.idle)
	if idle < surplus {
		m.idle = append(m.idle, batch{m.now, surplus - idle})
	}
	for last := len(m.idle) - 1; idle > surplus; last-- {
		taken := min(m.idle[last].workers, idle-surplus)
		m.idle[last].workers -= taken
		if idle -= taken; m.idle[last].workers == 0 {
			m.idle = m.idle[:last]
		}
	}
}

// pass lets time pass up to a moment.
func (m *model) pass(until time.Duration) {
	for m.now < until {
		next := until
		if len(m.starting) > 0 {
			next = min(next, m.starting[0].at)
		}
		if goes := m.leave(); goes > 0 {
			next = min(next, goes)
		}
		m.count(next - m.now)
		m.now = next
		m.arrive()
	}
	m.leave()
}

// leave ends the workers that have been idle for too long, and returns when the next one will have been; 0 if none.
func (m *model) leave() time.Duration {
	for len(m.idle) > 0 {
		spare := m.ready - max(m.needed, m.kept)
		if spare <= 0 {
			return 0
		}
		if goes := m.idle[0].at + m.group.IdleTimeout; goes > m.now {
			return goes
		}
		gone := min(spare, m.idle[0].workers)
		m.ready -= gone
		if m.idle[0].workers -= gone; m.idle[0].workers == 0 {
			m.idle = slices.Delete(m.idle, 0, 1)
		}
	}
	return 0
}

func (m *model) count(passed time.Duration) {
	if !m.counts {
		return
	}
	o, hours := &m.outcome, passed.Hours()
	o.Paid += hours * float64(m.ready+sum(m.starting))
	o.Idle += hours * float64(max(m.ready-m.needed, 0))
	o.Waited += hours * float64(max(m.needed-m.ready, 0))
	o.Needed += hours * float64(m.needed)
}
