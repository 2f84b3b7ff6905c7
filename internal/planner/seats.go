package planner

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/placing"
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
func (p *planning) seat(lots []placing.NodeClass) (*placing.Ledger, []*vector.Item) {
	l := p.joinedLedger(lots)
	if b := p.NewBatch(overREST, p.shareItems(), placing.Fullest); p.placed(l, b) {
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
	if b := p.NewBatch(overREST, p.ofKinds(together), placing.Fullest); before > 0 && !p.placed(l, b) {
		l, before = p.joinedLedger(lots), 0
	}
	return l, p.ofKinds(p.seatEach(l, order[before:]))
}

// joinedLedger opens a ledger on the nodes that have joined Ray; nothing can be launched on it.
func (p *planning) joinedLedger(lots []placing.NodeClass) *placing.Ledger {
	joined := make([]placing.NodeClass, 0, len(lots))
	for i := range lots {
		if lots[i].Phase != fleet.OnTheWay {
			joined = append(joined, lots[i])
		}
	}
	l := p.Open(joined, make([]int64, len(p.Groups)))
	clear(l.Room)
	l.Spare, l.Tracing = 0, true
	return l
}

func (p *planning) placed(l *placing.Ledger, b *placing.Batch) bool {
	p.Place(l, b)
	return b.Served()
}

// seatEach seats one request after the other and returns, by kind of bundle, what is left of them.
func (p *planning) seatEach(l *placing.Ledger, order []*share) []int64 {
	left := make([]int64, len(p.kinds)) // what has no place now has none later
	for _, s := range order {
		p.BreakOff()
		b := p.NewBatch(overREST, s.items, placing.Fullest)
		for i, it := range s.items {
			if b.Left[i] = s.had[i]; left[s.kinds[i]] > 0 || it.Trivial() {
				b.Left[i] = 0
			}
		}
		l.UseExisting(b)
		p.Looks += b.Looks
		for i, it := range s.items {
			switch at := s.kinds[i]; {
			case it.Trivial():
			case left[at] > 0:
				left[at] = min(left[at]+s.had[i], vector.MaxCount)
			default:
				left[at] = b.Left[i]
			}
		}
	}
	return left
}

// sharePlaces finds the places of each kind of bundle: those on nodes that have joined first, then those on the way, then planned ones.
func (p *planning) sharePlaces(given []int64) map[string][]placing.Placement {
	settled := p.settledLots()
	l, left := p.seat(settled)
	if len(left) > 0 {
		coming := slices.DeleteFunc(p.Open(settled, given).Classes, func(l placing.NodeClass) bool { return l.Phase != fleet.OnTheWay })
		l.Classes = append(l.Classes, coming...)
		p.Place(l, p.NewBatch(overREST, left, placing.Fullest))
	}
	places := map[string][]placing.Placement{}
	for _, at := range l.Traces {
		places[at.Item.Key] = append(places[at.Item.Key], at)
	}
	for _, all := range places {
		slices.SortStableFunc(all, func(a, b placing.Placement) int {
			return cmp.Or(vector.CompareBool(a.Phase == fleet.OnTheWay, b.Phase == fleet.OnTheWay), vector.CompareBool(a.Planned, b.Planned), cmp.Compare(a.Group, b.Group))
		})
	}
	return places
}

// settledLots are the nodes that stay and what they have in total. Who is idle, and for how long, does not matter, so that what serves a
// request is told the same from one plan to the next.
func (p *planning) settledLots() []placing.NodeClass {
	lots := slices.Clone(p.totals)
	for i := range lots {
		lots[i].Members = slices.DeleteFunc(slices.Clone(lots[i].Members), func(n int) bool { return p.Nodes[n].Stop != "" })
		if stopped := len(p.totals[i].Members) - len(lots[i].Members); stopped > 0 {
			lots[i].Count -= int64(stopped)
		}
		if lots[i].Phase < fleet.OnTheWay {
			lots[i].Phase = fleet.Running
		}
		slices.Sort(lots[i].Members) // nodes are numbered in the order of their names
	}
	lots = slices.DeleteFunc(lots, func(l placing.NodeClass) bool { return l.Count == 0 })
	slices.SortStableFunc(lots, func(a, b placing.NodeClass) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Size, b.Size), slices.Compare(a.Free, b.Free),
			cmp.Compare(a.Shape.Group, b.Shape.Group), cmp.Compare(a.Shape.Labels, b.Shape.Labels), slices.Compare(a.Shape.Total, b.Shape.Total))
	})
	return joinedLots(lots)
}

// joinedLots makes one lot of neighbours that are equal but for how long they have been idle.
func joinedLots(lots []placing.NodeClass) []placing.NodeClass {
	var all []placing.NodeClass
	for _, l := range lots {
		if n := len(all) - 1; n >= 0 && l.Members != nil && all[n].Members != nil && all[n].Phase == l.Phase && all[n].Shape.Group == l.Shape.Group &&
			all[n].Shape.Labels == l.Shape.Labels && slices.Equal(all[n].Free, l.Free) {
			all[n].Members = append(slices.Clip(all[n].Members), l.Members...)
			slices.Sort(all[n].Members)
			all[n].Count += l.Count
			continue
		}
		all = append(all, l)
	}
	return all
}
