package placing

import "heliostat.dev/heliostat/pkg/nodepool/binpack"

// bindPools lowers the room of groups on a ledger to that of the nodes, with the given pods on their way.
func (p *Placer) bindPools(l *Ledger, given []int64) {
	if p.Ceilings == nil {
		return
	}
	l.ceilings, l.on = p.Ceilings, p.Ceilings.Occupied(given)
	l.lowerRoom()
}

// occupy places launched pods on nodes, and lowers the room of all groups that compete with them.
func (l *Ledger) occupy(group int, count int64) {
	if !l.ceilings.Limits(group) {
		return
	}
	l.ceilings.Occupy(l.on, group, count)
	l.lowerRoom()
}

func (l *Ledger) lowerRoom() {
	for i := range l.Room {
		l.Room[i] = min(l.Room[i], l.ceilings.Room(l.on, i))
	}
}

// CopyNodes makes the room on nodes equal to that of another ledger.
func (l *Ledger) CopyNodes(other *Ledger) {
	l.ceilings = other.ceilings
	if other.on == nil {
		l.on = nil
		return
	}
	if l.on == nil {
		l.on = &binpack.State{}
	}
	l.on.CopyFrom(other.on)
}
