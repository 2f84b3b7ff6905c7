package place

import (
	"cmp"
	"slices"
)

// vacant reports whether the nodes of a class are free as a whole.
func (l *NodeClass) vacant() bool {
	return !l.touched && !l.used && slices.Equal(l.free, l.Shape.Total)
}

// takeVacant takes vacant replicas of an entry's group off the ledger, as many as the entry needs, those that stay
// anyway in front: first workers that Ray does not call idle, then those that were busy last, then pods on their way.
// Of the latter only the number counts, because demand may be placed on any of equal pods.
func (p *Search) takeVacant(l *Ledger, e *WarmEntry) {
	hosts := p.Groups[e.Group].Hosts
	units := p.vacantUnits(l, e.Group)
	taken := map[int]bool{}
	for _, u := range units[:min(int64(len(units)), e.Count)] {
		for _, n := range u.nodes {
			taken[n] = true
		}
		e.Nodes = append(e.Nodes, u.nodes...)
		e.Ready++
	}
	var coming, planned int64
	for k := range l.classes {
		switch class := &l.classes[k]; {
		case class.Shape.group != e.Group || !class.vacant():
		case class.phase != OnTheWay:
			class.members = slices.DeleteFunc(slices.Clone(class.members), func(n int) bool { return taken[n] })
			class.count = int64(len(class.members))
		case class.planned:
			planned += class.count
		default:
			coming += class.count
		}
	}
	e.Coming = min(coming/hosts, e.Missing())
	e.Launching = min((coming+planned)/hosts-coming/hosts, e.Missing())
	e.pods[e.Group] = e.Coming * hosts
	l.withdraw(e.Group, (e.Coming+e.Launching)*hosts)
	l.classes = slices.DeleteFunc(l.classes, func(class NodeClass) bool { return class.count == 0 })
}

// withdraw takes vacant pods on their way off the ledger, those that this plan launches last.
func (l *Ledger) withdraw(group int, pods int64) {
	for _, planned := range []bool{false, true} {
		for k := range l.classes {
			class := &l.classes[k]
			if class.Shape.group != group || class.planned != planned || class.phase != OnTheWay ||
				!class.vacant() {
				continue
			}
			n := min(class.count, pods)
			pods -= n
			if class.count -= n; class.members != nil {
				class.members = class.members[:class.count:class.count]
			}
		}
	}
}

// vacantUnits lists the vacant replicas of a group whose workers have all joined.
func (p *Search) vacantUnits(l *Ledger, group int) []unit {
	vacant, marked := p.vacantNodes(l), make([]bool, len(p.Groups))
	marked[group] = true
	units := slices.DeleteFunc(p.units(marked, nobody), func(u unit) bool {
		return int64(len(u.nodes)) != p.Groups[group].Hosts ||
			slices.ContainsFunc(u.nodes, func(n int) bool { return !vacant[n] })
	})
	phase := func(u unit) (last Phase) {
		for _, n := range u.nodes {
			if last = max(last, p.Nodes[n].ownPhase()); p.overdue(&p.Nodes[n]) {
				last = Overdue
			}
		}
		return last
	}
	slices.SortFunc(units, func(a, b unit) int {
		return cmp.Or(
			cmp.Compare(phase(a), phase(b)), cmp.Compare(a.idleSeconds, b.idleSeconds), cmp.Compare(a.key, b.key),
		)
	})
	return units
}

// openAgain begins anew on a ledger on which all demand is placed: what was placed counts as taken, and touched marks
// only what is placed from now on. Vacant classes of the groups that are not offered are taken off. Idle workers whose
// timeout is over come after the other idle ones, also while their group's minimum keeps them: what the minimum keeps
// changes with each launch.
func (p *Search) openAgain(l *Ledger, offered func(group int) bool) {
	l.stepwise, l.tracing, l.log = false, true, nil
	clear(l.launched)
	l.classes = slices.DeleteFunc(l.classes, func(class NodeClass) bool {
		return class.vacant() && class.Shape.group >= 0 && !offered(class.Shape.group)
	})
	for k := range l.classes {
		class := &l.classes[k]
		class.hidden = false
		if class.touched {
			// A class that demand uses is never vacant again, whatever is free on it.
			class.touched, class.used = false, true
		}
		overdue := func(n int) bool { return p.overdue(&p.Nodes[n]) }
		if class.phase >= Overdue || !slices.ContainsFunc(class.members, overdue) {
			continue
		}
		late := *class
		late.phase = Overdue
		late.members = slices.DeleteFunc(slices.Clone(class.members), func(n int) bool { return !overdue(n) })
		class.members = slices.DeleteFunc(slices.Clone(class.members), overdue)
		class.count, late.count = int64(len(class.members)), int64(len(late.members))
		l.classes = append(l.classes, late)
	}
	l.classes = slices.DeleteFunc(l.classes, func(class NodeClass) bool { return class.count == 0 })
	slices.SortStableFunc(l.classes, func(a, b NodeClass) int { return cmp.Compare(a.phase, b.phase) })
}

// addLaunched books pods of a group and adds them to the ledger as free.
func (p *Search) addLaunched(l *Ledger, group int, pods int64) {
	for _, class := range l.launch(&p.Groups[group], pods) {
		class.size = p.sizeOn(class.Shape, class.free)
		l.classes = append(l.classes, class)
	}
}

// capRoom lowers the room of a ledger's groups to what the in-flight caps allow beside the given pods, and closes the
// groups that are not open.
func (p *Search) capRoom(l *Ledger, given []int64, open func(group int) bool) {
	var all int64
	for i := range p.Groups {
		room, asked := p.roomUnderCap(i, given)
		all += asked
		if !open(i) {
			room = 0
		}
		l.room[i] = min(l.room[i], room)
	}
	l.spare = min(l.spare, max(OrUnbounded(p.Policy.MaxInFlight)-all, 0))
	l.tries, l.lifted = false, false
	l.cut, l.asked, l.cutAll = make([]int64, len(p.Groups)), make([]int64, len(p.Groups)), 0
}
