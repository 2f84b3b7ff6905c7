package place

import (
	"slices"
)

// Outcome is the result of one round of placing all demand.
type Outcome struct {
	// launched counts the pods in addition to those given, by group.
	launched []int64
	// Unserved counts the waiting bundles of each request item.
	Unserved []int64
	Gangs    []*Gang // not served
	Claims   []int   // not served, by number
	// unserved bundles of each item of those claims: all, unless the caps allow a part to be launched
	claimed  [][]int64
	Used     []bool // nodes that demand was placed on
	kept     int    // those of them that would otherwise stop as idle
	HeldOver []bool // nodes that stay until demand has moved away; nil if there are none
	spared   []bool // nodes that stay for deferred demand; nil if there are none
	// reordered: another order than the first was better.
	reordered bool
	Runs      []Run
	classes   int // node classes on the ledger at the end, including launched ones
	// Log lists what is placed on pods that have not joined. In the end, it has only those that this plan launches, and
	// Waits those that were requested before.
	Log, Waits []Placement
	// ledgers are that of the demand and those of the calls of request_resources, if warm capacity is placed on what
	// they leave. warmed are its launches, and Warm says which entry, from 1, keeps a node; nil if none does.
	ledgers []*Ledger
	warmed  []warmLaunch
	warm    []int
}

func (o *Outcome) markUsed(l *Ledger) {
	for i := range l.classes {
		if l.classes[i].touched {
			for _, n := range l.classes[i].members {
				o.Used[n] = true
			}
		}
	}
}

// perfect reports whether nothing can be better: all demand is served, nothing is launched for it, and no node is kept
// from stopping.
func (o *Outcome) perfect() bool { return Sum(o.launched) == 0 && o.served() && o.kept == 0 }

// fallbacks counts the gangs that use another choice than their first.
func (o *Outcome) fallbacks() (n int) {
	for _, r := range o.Runs {
		if r.Option > 0 {
			n += len(r.Gangs)
		}
	}
	return n
}

// served reports whether nothing is waiting.
func (o *Outcome) served() bool {
	return Sum(o.Unserved) == 0 && len(o.Gangs)+len(o.Claims) == 0
}

// servesAllOf reports whether no request has more unserved bundles than in other.
func (o *Outcome) servesAllOf(other *Outcome) bool {
	for i, n := range o.Unserved {
		if n > other.Unserved[i] {
			return false
		}
	}
	return true
}

// asGood reports whether o serves everything that other serves.
func (o *Outcome) asGood(other *Outcome) bool {
	return o.servesAllOf(other) && len(o.Claims) <= len(other.Claims) && subset(o.Gangs, other.Gangs)
}

func subset(few, many []*Gang) bool {
	if len(few) == 0 {
		return true
	}
	known := setOf(many)
	return !slices.ContainsFunc(few, func(g *Gang) bool { return !known[g] })
}

func setOf(gangs []*Gang) map[*Gang]bool {
	set := make(map[*Gang]bool, len(gangs))
	for _, g := range gangs {
		set[g] = true
	}
	return set
}

// LeftOf counts the unserved bundles of each item of a claim.
func (o *Outcome) LeftOf(i int, c Claim) []int64 {
	if at := slices.Index(o.Claims, i); at >= 0 {
		return o.claimed[at]
	}
	return make([]int64, len(c.Items))
}

// IsSpared reports whether a node stays only because demand that is not planned now could need it.
func (o *Outcome) IsSpared(node int) bool { return o.spared != nil && o.spared[node] }

// IsHeldOver reports whether a node stays only until its replacement has joined Ray.
func (o *Outcome) IsHeldOver(node int) bool { return o.HeldOver != nil && o.HeldOver[node] }

// shareAmongIdentical separates what waits from what is launched. It divides what was booked under the items of the
// first gang among the gangs that were placed together: existing nodes go to those in front, launches to those at the
// end.
func (o *Outcome) shareAmongIdentical() {
	shared := map[*Item]*sharing{}
	for _, r := range o.Runs {
		if len(r.Gangs) < 2 {
			continue
		}
		for i, it := range r.Gangs[0].Options[r.Option].Items {
			shared[it] = &sharing{r, i, it.Request.Count, it.Request.Count * int64(len(r.Gangs))}
		}
	}
	all := o.Log
	o.Log = nil
	for _, planned := range []bool{true, false} {
		for _, e := range all {
			if e.Planned != planned {
				continue
			}
			book := func(own *Item, n int64) {
				e.Item, e.Count = own, n
				if planned {
					o.Log = append(o.Log, e)
				} else {
					o.Waits = append(o.Waits, e)
				}
			}
			if s := shared[e.Item]; s != nil {
				s.deal(e.Count, book)
			} else {
				book(e.Item, e.Count)
			}
		}
	}
}

// sharing divides what was booked under one item among gangs that were placed together.
type sharing struct {
	run  Run
	item int
	each int64
	left int64 // unassigned bundles, counted from the last one
}

func (s *sharing) deal(n int64, to func(own *Item, n int64)) {
	for n > 0 && s.left > 0 {
		g := (s.left - 1) / s.each
		part := min(n, s.left-g*s.each)
		to(s.run.Gangs[g].Options[s.run.Option].Items[s.item], part)
		n, s.left = n-part, s.left-part
	}
}
