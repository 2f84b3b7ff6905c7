package placing

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

func OrUnbounded(most int) int64 {
	if most <= 0 {
		return vector.MaxCount
	}
	return int64(most)
}

// InFlightCaps is how much the in-flight caps reduce a ledger's limits.
type InFlightCaps struct {
	// asked counts the pods on their way, by group, before the ledger's own launches.
	asked []int64
	// cut is the reduction of each group's room, cutAll that of all groups together.
	cut    []int64
	cutAll int64
}

func (c *InFlightCaps) CopyFrom(other *InFlightCaps) {
	c.asked, c.cut, c.cutAll = append(c.asked[:0], other.asked...), append(c.cut[:0], other.cut...), other.cutAll
}

// capLedger lowers a ledger's limits to what the step may launch. A replica that is larger than a cap is launched
// alone.
func (p *Placer) capLedger(l *Ledger, given []int64) {
	var all int64
	least := int64(vector.MaxCount)
	l.asked, l.cut = make([]int64, len(p.Groups)), make([]int64, len(p.Groups))
	for i := range p.Groups {
		g := &p.Groups[i]
		l.asked[i] = g.Pending() + given[i]
		all += l.asked[i]
		l.Room[i] = min(l.Room[i], p.Uncut[i]-given[i])
		room := max(g.InFlight-l.asked[i], 0)
		if l.asked[i] == 0 {
			room = max(room, g.Hosts)
		}
		l.cut[i] = l.Room[i]
		l.Room[i] = min(l.Room[i], room-room%g.Hosts)
		l.cut[i] -= l.Room[i]
		if l.tries {
			l.lowerRoomOf(i)
		}
		if l.Room[i] > 0 {
			least = min(least, g.Hosts)
		}
	}
	spare := max(OrUnbounded(p.Policy.MaxInFlight)-all, 0)
	if all == 0 && least < vector.MaxCount {
		spare = max(spare, least)
	}
	l.cutAll = l.Spare
	l.Spare = min(l.Spare, spare)
	l.cutAll -= l.Spare
}

// liftCaps restores what the caps remove; recap removes it again from what is left.
func (l *Ledger) liftCaps() {
	for i, n := range l.cut {
		l.Room[i] += n
	}
	l.Spare += l.cutAll
	l.lifted = l.tries
}

func (l *Ledger) restoreCaps() {
	for i, cut := range l.cut {
		left := l.Room[i]
		l.Room[i] = max(left-cut, 0)
		l.cut[i] = left - l.Room[i]
	}
	left := l.Spare
	l.Spare = max(left-l.cutAll, 0)
	l.cutAll = left - l.Spare
	if l.lifted = false; l.tries {
		l.lowerRoom()
	}
}

// reserve keeps all that is left under each limiting cap for launches that are waiting for it. It counts as requested,
// so that no other gang exceeds the cap in the meantime.
func (l *Ledger) reserve(launched []int64) {
	var all int64
	for i := range launched {
		need := launched[i] - l.Launched[i]
		all += need
		if need > l.Room[i] {
			l.asked[i] += max(l.Room[i], 1)
			l.cut[i] += l.Room[i]
			l.Room[i] = 0
		}
	}
	if all > l.Spare {
		l.cutAll += l.Spare
		l.Spare = 0
		for i := range l.asked {
			l.asked[i]++
		}
	}
}

// Uncapped returns a copy of a ledger without caps, or nil if it has none.
func (p *Placer) Uncapped(l *Ledger) *Ledger {
	if len(l.cut) == 0 {
		return nil
	}
	lifted := p.Trial(l)
	lifted.liftCaps()
	return lifted
}

// ReserveRest reserves the launches that a claim still needs.
func (l *Ledger) ReserveRest(needed, launched []int64) {
	rest := slices.Clone(l.Launched)
	for i := range rest {
		rest[i] += max(needed[i]-launched[i], 0)
	}
	l.reserve(rest)
}
