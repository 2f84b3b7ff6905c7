package planner

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/packing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Which worker serves whose request over REST. On workers that have joined Ray all that is planned for is placed together where all of it fits. Else
// what was satisfied before keeps its place, and the others have theirs in the order in which they are served; what is left over waits for
// workers that are on their way. So nobody's request ceases to be satisfied because another one grows.

// seatingOrder lists the requests that were satisfied before, in the order in which they came to be, and then the others in the order in which
// they are served.
func (p *planning) seatingOrder() []*share {
	all := make([]*share, len(p.shares))
	for i := range p.shares {
		all[i] = &p.shares[i]
	}
	slices.SortStableFunc(all, func(a, b *share) int {
		return cmp.Or(vector.CompareBool(b.satisfied(), a.satisfied()), a.SatisfiedSince.Compare(b.SatisfiedSince))
	})
	return all
}

func (s *share) satisfied() bool { return !s.SatisfiedSince.IsZero() }

// seat places what is planned for of the requests on those of some nodes that have joined Ray, as a whole each, and returns what finds no place.
func (p *planning) seat(lots []lot) (*ledger, []*vector.Item) {
	l := p.joinedLedger(lots)
	if b := p.newBatch(overREST, p.shareItems(), fullest); p.placed(l, b) {
		return l, nil
	}
	l = p.joinedLedger(lots)
	order := p.seatingOrder()
	before := slices.IndexFunc(order, func(s *share) bool { return !s.satisfied() })
	if before < 0 {
		before = len(order)
	}
	together := make([]int64, len(p.kinds))
	for _, s := range order[:before] {
		s.addTo(together)
	}
	if b := p.newBatch(overREST, p.ofKinds(together), fullest); before > 0 && !p.placed(l, b) {
		l, before = p.joinedLedger(lots), 0
	}
	return l, p.ofKinds(p.seatEach(l, order[before:]))
}

// joinedLedger opens a ledger on the nodes that have joined Ray; nothing can be launched on it.
func (p *planning) joinedLedger(lots []lot) *ledger {
	joined := make([]lot, 0, len(lots))
	for i := range lots {
		if lots[i].phase != fleet.OnTheWay {
			joined = append(joined, lots[i])
		}
	}
	l := p.open(joined, make([]int64, len(p.Groups)))
	clear(l.room)
	l.spare, l.tracing = 0, true
	return l
}

func (p *planning) placed(l *ledger, b *batch) bool {
	p.place(l, b)
	return b.served()
}

// seatEach seats one request after the other and returns, by kind of bundle, what is left of them.
func (p *planning) seatEach(l *ledger, order []*share) []int64 {
	left := make([]int64, len(p.kinds)) // what has no place now has none later
	for _, s := range order {
		p.breakOff()
		b := p.newBatch(overREST, s.items, fullest)
		for i, it := range s.items {
			if b.left[i] = s.had[i]; left[s.kinds[i]] > 0 || it.Trivial() {
				b.left[i] = 0
			}
		}
		l.useStanding(b)
		p.looks += b.looks
		for i, it := range s.items {
			switch at := s.kinds[i]; {
			case it.Trivial():
			case left[at] > 0:
				left[at] = min(left[at]+s.had[i], vector.MaxCount)
			default:
				left[at] = b.left[i]
			}
		}
	}
	return left
}

// sharePlaces finds the places of each kind of bundle: those on nodes that have joined first, then those on the way, then planned ones.
func (p *planning) sharePlaces(given []int64) map[string][]placement {
	settled := p.settledLots()
	l, left := p.seat(settled)
	if len(left) > 0 {
		coming := slices.DeleteFunc(p.open(settled, given).lots, func(l lot) bool { return l.phase != fleet.OnTheWay })
		l.lots = append(l.lots, coming...)
		p.place(l, p.newBatch(overREST, left, fullest))
	}
	places := map[string][]placement{}
	for _, at := range l.traces {
		places[at.item.Key] = append(places[at.item.Key], at)
	}
	for _, all := range places {
		slices.SortStableFunc(all, func(a, b placement) int {
			return cmp.Or(vector.CompareBool(a.phase == fleet.OnTheWay, b.phase == fleet.OnTheWay), vector.CompareBool(a.planned, b.planned), cmp.Compare(a.group, b.group))
		})
	}
	return places
}

// settledLots are the nodes that stay and what they have in total. Who is idle, and for how long, does not matter, so that what serves a
// request is told the same from one plan to the next.
func (p *planning) settledLots() []lot {
	lots := slices.Clone(p.totals)
	for i := range lots {
		lots[i].members = slices.DeleteFunc(slices.Clone(lots[i].members), func(n int) bool { return p.Nodes[n].Stop != "" })
		if stopped := len(p.totals[i].members) - len(lots[i].members); stopped > 0 {
			lots[i].count -= int64(stopped)
		}
		if lots[i].phase < fleet.OnTheWay {
			lots[i].phase = fleet.Running
		}
		slices.Sort(lots[i].members) // nodes are numbered in the order of their names
	}
	lots = slices.DeleteFunc(lots, func(l lot) bool { return l.count == 0 })
	slices.SortStableFunc(lots, func(a, b lot) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), cmp.Compare(a.size, b.size), slices.Compare(a.free, b.free),
			cmp.Compare(a.shape.Group, b.shape.Group), cmp.Compare(a.shape.Labels, b.shape.Labels), slices.Compare(a.shape.Total, b.shape.Total))
	})
	return joinedLots(lots)
}

// joinedLots makes one lot of neighbours that are equal but for how long they have been idle.
func joinedLots(lots []lot) []lot {
	var all []lot
	for _, l := range lots {
		if n := len(all) - 1; n >= 0 && l.members != nil && all[n].members != nil && all[n].phase == l.phase && all[n].shape.Group == l.shape.Group &&
			all[n].shape.Labels == l.shape.Labels && slices.Equal(all[n].free, l.free) {
			all[n].members = append(slices.Clip(all[n].members), l.members...)
			slices.Sort(all[n].members)
			all[n].count += l.count
			continue
		}
		all = append(all, l)
	}
	return all
}

// trace notes what was placed on the nodes of a lot.
func (l *ledger) trace(b *batch, at *lot, portions []packing.Portion) {
	for _, p := range portions {
		l.traces = append(l.traces, placement{item: b.items[p.Item], each: p.Count, count: at.count, group: at.shape.Group, phase: at.phase, planned: at.planned, members: at.members})
	}
}
