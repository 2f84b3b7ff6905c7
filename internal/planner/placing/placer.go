// Package placing puts demand on a Ledger: on nodes that are there, on pods on their way, and on pods that it launches,
// within the limits that the ledger keeps. A Ledger is the one thing that changes; a trial works on a copy. The package
// must not compare plans or decide in which order demand is placed: package search does.
package placing

import (
	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
)

// Placer places demand on ledgers. It knows the fleet and what launching costs, and it keeps the budget of work that
// placing shares with the search.
type Placer struct {
	*fleet.Fleet
	Policy model.Policy
	Costs  cost.Model
	// Uncut counts the pods that a plan launches in all, by group, while it is cut down to what the caps on pods in flight
	// allow; nil otherwise.
	Uncut []int64
	// released are ledgers whose memory is used again.
	released []*Ledger
	// Steps counts the work on packing programs so far.
	Steps int
	// Looks counts how often a bundle was tried on a node.
	Looks int64
	// Stop is closed when nobody waits for the plan any more; nil never is.
	Stop <-chan struct{}
}

// brokenOff is the panic that ends a planning nobody waits for any more. It leaves no planning behind that could be
// looked at.
type brokenOff struct{}

// UnlessBrokenOff reports whether something was done to its end.
func UnlessBrokenOff(do func()) (done bool) {
	defer func() {
		if cause := recover(); cause != nil {
			if _, broken := cause.(brokenOff); !broken {
				panic(cause)
			}
		}
	}()
	do()
	return true
}

// BreakOff ends the planning when nobody waits for it any more. It is called where each further step takes at most some
// milliseconds.
func (p *Placer) BreakOff() {
	select {
	case <-p.Stop:
		panic(brokenOff{})
	default:
	}
}
