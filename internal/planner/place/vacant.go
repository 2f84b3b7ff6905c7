package place

import (
	"cmp"
	"slices"
)

// Vacant counts the replicas of a group on which nothing runs and nothing is placed: on workers that have joined, on
// pods that were requested earlier, and on pods that the plan launches. nodes are the numbers of the nodes.
type Vacant struct {
	joined, coming, planned int64
	nodes                   []int
}

// vacantUnit is one replica, with the numbers of its nodes.
type vacantUnit struct {
	nodes []int
	phase Phase
	idle  float64
	name  string
}

// vacant reports whether the nodes of a class are free as a whole.
func (l *NodeClass) vacant() bool {
	return !l.touched && !l.used && slices.Equal(l.free, l.Shape.Total)
}

// takeVacant takes at most so many vacant replicas of a group off the ledger, those that stay anyway in front: first
// workers that Ray does not call idle, then those that were busy last, then pods on their way. Of the latter only the
// number counts, because demand may be placed on any of equal pods.
func (p *Search) takeVacant(l *Ledger, group int, most int64) Vacant {
	var found Vacant
	hosts := p.Groups[group].Hosts
	taken := map[int]bool{}
	for _, u := range p.vacantUnits(l, group) {
		if found.joined == most {
			break
		}
		for _, n := range u.nodes {
			taken[n] = true
		}
		found.nodes = append(found.nodes, u.nodes...)
		found.joined++
	}
	var coming, planned int64
	for k := range l.classes {
		switch class := &l.classes[k]; {
		case class.Shape.group != group || !class.vacant():
		case class.phase != OnTheWay:
			class.members = slices.DeleteFunc(slices.Clone(class.members), func(n int) bool { return taken[n] })
			class.count = int64(len(class.members))
		case class.planned:
			planned += class.count
		default:
			coming += class.count
		}
	}
	found.coming = min(coming/hosts, most-found.joined)
	found.planned = min((coming+planned)/hosts-coming/hosts, most-found.joined-found.coming)
	l.withdraw(group, (found.coming+found.planned)*hosts)
	l.classes = slices.DeleteFunc(l.classes, func(class NodeClass) bool { return class.count == 0 })
	return found
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
func (p *Search) vacantUnits(l *Ledger, group int) []vacantUnit {
	hosts, byName := p.Groups[group].Hosts, map[string]*vacantUnit{}
	for k := range l.classes {
		class := &l.classes[k]
		if class.Shape.group != group || class.phase == OnTheWay || !class.vacant() {
			continue
		}
		for _, n := range class.members {
			node := &p.Nodes[n]
			name := node.Pod
			if hosts > 1 {
				name = node.Replica
			}
			u := byName[name]
			if u == nil {
				u = &vacantUnit{name: name, idle: node.IdleSeconds}
				byName[name] = u
			}
			u.nodes = append(u.nodes, n)
			u.phase, u.idle = max(u.phase, class.phase), min(u.idle, node.IdleSeconds)
		}
	}
	var units []vacantUnit
	for _, u := range byName {
		if int64(len(u.nodes)) == hosts {
			slices.Sort(u.nodes)
			units = append(units, *u)
		}
	}
	slices.SortFunc(units, func(a, b vacantUnit) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), cmp.Compare(a.idle, b.idle), cmp.Compare(a.name, b.name))
	})
	return units
}

// openAgain begins anew on a ledger on which all demand is placed: what was placed counts as taken, and touched marks
// only what is placed from now on. Vacant classes of the groups that are not offered are taken off. Idle workers whose
// timeout is over come after the other idle ones, also while their group's minimum keeps them: what the minimum keeps
// changes with each launch.
func (p *Search) openAgain(l *Ledger, offered func(group int) bool) {
	l.stepwise, l.tracing, l.traces, l.log, l.waits = false, true, nil, nil, nil
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
		g := &p.Groups[i]
		asked := g.Pending() + given[i]
		all += asked
		room := max(g.InFlight-asked, 0)
		if asked == 0 {
			room = max(room, g.Hosts)
		}
		if !open(i) {
			room = 0
		}
		l.room[i] = min(l.room[i], room-room%g.Hosts)
	}
	l.spare = min(l.spare, max(OrUnbounded(p.Policy.MaxInFlight)-all, 0))
	l.tries, l.lifted = false, false
	l.inFlightCaps = inFlightCaps{cut: make([]int64, len(p.Groups)), asked: make([]int64, len(p.Groups))}
}
