// Package placing places demand on a Ledger: on existing nodes, on pods on their way, and on pods that it launches,
// within the ledger's limits. Only a Ledger changes; a trial works on a copy. The package must not compare plans or
// decide the order in which demand is placed: package search does.
package placing

import (
	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
)

// Placer places demand on ledgers. It knows the fleet and the cost of launches, and it counts the work, which it shares
// with the search.
type Placer struct {
	*fleet.Fleet
	Policy model.Policy
	Costs  cost.Model
	// Uncut counts all pods that a plan launches, by group, while the plan is reduced to what the in-flight caps allow;
	// otherwise nil.
	Uncut []int64
	// KnownOnly closes the groups for whose pods no node is known.
	KnownOnly bool
	// released are ledgers whose memory can be reused.
	released []*Ledger
	// Steps counts the work on packings so far.
	Steps int
	// Looks counts how often a bundle was tried on a node. Beyond MostLooks, the planning ends unfinished; 0 means no
	// limit.
	Looks, MostLooks int64
	// Stop is closed when the caller stops waiting for the plan; nil is never closed.
	Stop <-chan struct{}
}

// brokenOff is the panic value that ends a planning whose caller stopped waiting. The unfinished planning is discarded.
type brokenOff struct{}

// tooMuchWork is the panic value that ends a planning that took more work than it may.
type tooMuchWork struct{}

// UnlessBrokenOff runs a function and reports whether it finished before the caller stopped waiting.
func UnlessBrokenOff(do func()) (done bool) { return unless[brokenOff](do) }

// UnlessTooMuchWork runs a function and reports whether it finished within MostLooks.
func UnlessTooMuchWork(do func()) (done bool) { return unless[tooMuchWork](do) }

// unless runs a function and reports whether it finished without a panic of this type.
func unless[cause any](do func()) (done bool) {
	defer func() {
		if found := recover(); found != nil {
			if _, expected := found.(cause); !expected {
				panic(found)
			}
		}
	}()
	do()
	return true
}

// BreakOff ends the planning if the caller stopped waiting, or if it took too much work. Call it where each step takes
// at most some milliseconds.
func (p *Placer) BreakOff() {
	if p.MostLooks > 0 && p.Looks > p.MostLooks {
		panic(tooMuchWork{})
	}
	select {
	case <-p.Stop:
		panic(brokenOff{})
	default:
	}
}
