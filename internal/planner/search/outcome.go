package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Outcome is what one round of placing all demand comes to.
type Outcome struct {
	// launched counts the pods beyond those given, by group.
	launched []int64
	// Unserved counts the bundles of each request item that wait still.
	Unserved []int64
	Gangs    []*fleet.Gang // not served
	Claims   []int         // not served, by number
	claimed  [][]int64     // bundles of each item of those that are left: all, unless the caps let a part be launched
	Used     []bool        // nodes that demand was placed on
	kept     int           // those of them that would leave as idle
	HeldOver []bool        // nodes that demand is to leave, and that stay until it has; nil where there are none
	joinable bool          // some of what it launches could have been chosen jointly
	// reordered: found in another order than the first, because that is better.
	reordered bool
	Runs      []placing.Run
	classes   int // what the ledger held in the end: kinds of nodes, those that the plan launches among them
	Log       []placing.Entry
	Waits     []placing.Wait
}

func (o *Outcome) markUsed(l *placing.Ledger) {
	for i := range l.Classes {
		if l.Classes[i].Touched {
			for _, n := range l.Classes[i].Members {
				o.Used[n] = true
			}
		}
	}
}

// perfect reports whether nothing is left to be desired: all is served, nothing launched for it, and no node kept from
// leaving.
func (o *Outcome) perfect() bool { return vector.Sum(o.launched) == 0 && o.served() && o.kept == 0 }

// fallbacks counts the gangs that go by another choice than their first.
func (o *Outcome) fallbacks() (n int) {
	for _, r := range o.Runs {
		if r.Option > 0 {
			n += len(r.Gangs)
		}
	}
	return n
}

// served reports whether nothing waits.
func (o *Outcome) served() bool {
	return vector.Sum(o.Unserved) == 0 && len(o.Gangs)+len(o.Claims) == 0
}

// asGood reports whether o serves everything that other serves.
func (o *Outcome) asGood(other *Outcome) bool {
	for i, n := range o.Unserved {
		if n > other.Unserved[i] {
			return false
		}
	}
	return len(o.Claims) <= len(other.Claims) && subset(o.Gangs, other.Gangs)
}

func subset(few, many []*fleet.Gang) bool {
	return !slices.ContainsFunc(few, func(g *fleet.Gang) bool { return !slices.Contains(many, g) })
}

// LeftOf counts the bundles of each item of a claim that are not served.
func (o *Outcome) LeftOf(i int, c Claim) []int64 {
	if at := slices.Index(o.Claims, i); at >= 0 {
		return o.claimed[at]
	}
	return make([]int64, len(c.Items))
}

// IsHeldOver reports whether a node stays only until what replaces it has joined Ray.
func (o *Outcome) IsHeldOver(node int) bool { return o.HeldOver != nil && o.HeldOver[node] }

// shareAmongIdentical deals out to each of the gangs that were placed together what was booked under the items of the
// first: what is there already to those in front, what is to be launched to those at the end.
func (o *Outcome) shareAmongIdentical() {
	for _, r := range o.Runs {
		if len(r.Gangs) < 2 {
			continue
		}
		for i, it := range r.Gangs[0].Options[r.Option].Items {
			o.deal(r, i, it)
		}
	}
}

func (o *Outcome) deal(r placing.Run, i int, it *vector.Item) {
	each := it.Request.Count
	left := each * int64(len(r.Gangs)) // bundles from the last one on that nobody has yet
	deal := func(n int64, to func(own *vector.Item, n int64)) {
		for n > 0 && left > 0 {
			g := (left - 1) / each
			part := min(n, left-g*each)
			to(r.Gangs[g].Options[r.Option].Items[i], part)
			n, left = n-part, left-part
		}
	}
	var log []placing.Entry
	for _, e := range o.Log {
		if e.Item != it {
			log = append(log, e)
			continue
		}
		deal(e.Count, func(own *vector.Item, n int64) {
			log = append(log, placing.Entry{Group: e.Group, Purpose: e.Purpose, Item: own, Count: n})
		})
	}
	var waits []placing.Wait
	for _, w := range o.Waits {
		if w.Item != it {
			waits = append(waits, w)
			continue
		}
		deal(w.Count, func(own *vector.Item, n int64) {
			waits = append(waits, placing.Wait{Item: own, Count: n, Since: w.Since})
		})
	}
	o.Log, o.Waits = log, waits
}
