package planner

import (
	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
)

// Placer places demand on ledgers. It knows the fleet and what launching costs, and it keeps the budget of work that placing shares
// with the search.
type Placer struct {
	*fleet.Fleet
	policy model.Policy
	yard   cost.Model
	// whole counts the pods that a plan launches in all, by group, while it is cut down to what the caps on pods in flight allow; nil
	// otherwise.
	whole []int64
	// released are ledgers whose memory is used again.
	released []*ledger
	// steps counts the work on packing programs so far.
	steps int
	// looks counts how often a bundle was tried on a node.
	looks int64
	// stop is closed when nobody waits for the plan any more; nil never is.
	stop <-chan struct{}
}

// brokenOff is the panic that ends a planning nobody waits for any more. It leaves no planning behind that could be looked at.
type brokenOff struct{}

// unlessBrokenOff reports whether something was done to its end.
func unlessBrokenOff(do func()) (done bool) {
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

// breakOff ends the planning when nobody waits for it any more. It is called where each further step takes at most some milliseconds.
func (p *Placer) breakOff() {
	select {
	case <-p.stop:
		panic(brokenOff{})
	default:
	}
}
