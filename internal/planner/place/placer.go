package place

import (
	"heliostat.dev/heliostat/internal/planner/model"
)

// placer places demand on ledgers. It knows the fleet and the cost of launches, and it counts the work, which it shares
// with the search.
type placer struct {
	*Fleet
	Policy model.Policy
	Costs  Model
	// uncut counts all pods that a plan launches, by group, while the plan is reduced to what the in-flight caps allow;
	// otherwise nil.
	uncut []int64
	// knownOnly closes the groups for whose pods no node is known.
	knownOnly bool
	// released are ledgers whose memory can be reused.
	released []*Ledger
	// Steps counts the work on packings so far.
	Steps int
	// Looks counts how often a bundle was tried on a node.
	Looks int64
	// Stop is closed when the caller stops waiting for the plan; nil is never closed.
	Stop <-chan struct{}
}

// brokenOff is the panic value that ends a planning whose caller stopped waiting. The unfinished planning is discarded.
type brokenOff struct{}

// UnlessBrokenOff runs a function and reports whether it finished before the caller stopped waiting.
func UnlessBrokenOff(do func()) (done bool) {
	defer func() {
		if found := recover(); found != nil {
			if _, expected := found.(brokenOff); !expected {
				panic(found)
			}
		}
	}()
	do()
	return true
}

// BreakOff ends the planning if the caller stopped waiting. Call it where each step takes at most some milliseconds.
func (p *placer) BreakOff() {
	select {
	case <-p.Stop:
		panic(brokenOff{})
	default:
	}
}
