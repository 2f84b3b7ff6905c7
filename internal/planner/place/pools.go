package place

import (
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// sharedNodesNow returns how many pods fit on the nodes, as far as what is being searched counts on pools of which
// nothing shows that there is room: not at all while groups that fit come first, then without a bound. What a step
// launches tries them.
func (p *Search) sharedNodesNow() *landing.SharedNodes {
	switch {
	case p.knownOnly:
		return p.Known
	case p.uncut != nil:
		return p.SharedNodes
	}
	return p.Hoped
}

// bindShared lowers the room of groups on a ledger to that of the nodes and quotas which they share, with the given
// pods on their way.
func (p *Search) bindShared(l *Ledger, given []int64) {
	if l.quotas, l.left = p.Quotas, p.Quotas.Left(given); l.quotas != nil {
		l.lowerRoomByQuotas()
	}
	l.ceilings = p.sharedNodesNow()
	if l.ceilings == nil {
		return
	}
	l.on = l.ceilings.Occupied(given)
	if l.tries = p.uncut != nil && p.TriesPools(); !l.tries {
		l.lowerRoom() // otherwise capLedger does
	}
}

// occupy places launched pods on nodes and takes them from quotas, and lowers the room of all groups that compete with
// them.
func (l *Ledger) occupy(group int, count int64) {
	if l.quotas != nil {
		l.quotas.Take(l.left, group, count)
		l.lowerRoomByQuotas()
	}
	if !l.ceilings.Limits(group) {
		return
	}
	l.ceilings.Occupy(l.on, group, count)
	if !l.lifted {
		l.lowerRoom()
	}
}

func (l *Ledger) lowerRoom() {
	for i := range l.room {
		l.lowerRoomOf(i)
	}
}

func (l *Ledger) lowerRoomOf(i int) {
	room := min(l.room[i], l.ceilings.Room(l.on, i))
	if l.tries {
		l.cut[i] += l.room[i] - room
	}
	l.room[i] = room
}

func (l *Ledger) lowerRoomByQuotas() {
	for i := range l.room {
		l.room[i] = min(l.room[i], l.quotas.Room(l.left, i))
	}
}
