package placing

// bindPools lowers the room of groups on a ledger to that of their pools, with the given pods on their way.
func (p *Placer) bindPools(l *Ledger, given []int64) {
	if p.Ceilings == nil {
		return
	}
	l.ceilings, l.Taken, l.Pods = p.Ceilings, p.Occupied(given), make([]int64, len(p.Groups))
	for i := range p.Groups {
		l.Pods[i] = p.Groups[i].Current + given[i]
		l.Room[i] = min(l.Room[i], l.ceilings.Room(l.Taken, i, l.Pods[i]))
	}
}

// occupy books launched pods and lowers the room of all groups that compete with them.
func (l *Ledger) occupy(group int, count int64) {
	if l.ceilings == nil || len(l.ceilings.Uses[group]) == 0 {
		return
	}
	l.ceilings.Occupy(l.Taken, group, count)
	l.Pods[group] += count
	for i := range l.Room {
		l.Room[i] = min(l.Room[i], l.ceilings.Room(l.Taken, i, l.Pods[i]))
	}
}
