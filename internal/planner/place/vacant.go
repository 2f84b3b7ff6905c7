package place

import (
	"cmp"
	"slices"
)

// Vacant counts the replicas of a group on which nothing runs and nothing is placed: on workers that have joined, on
// pods that were requested earlier, and on pods that the plan launches. Nodes are the numbers of the nodes.
type Vacant struct {
	Joined, Coming, Planned int64
	Nodes                   []int
}

// vacantUnit is one replica, with the numbers of its nodes.
type vacantUnit struct {
	nodes []int
	phase Phase
	idle  float64
	name  string
}

// Vacant reports whether the nodes of a class are free as a whole.
func (l *NodeClass) Vacant() bool {
	return !l.touched && !l.used && slices.Equal(l.Free, l.Shape.Total)
}

// takeVacant takes at most so many vacant replicas of a group off the ledger, those that stay anyway in front: first
// workers that Ray does not call idle, then those that were busy last, then pods on their way. Of the latter only the
// number counts, because demand may be placed on any of equal pods.
func (p *placer) takeVacant(l *Ledger, group int, most int64) Vacant {
	var found Vacant
	hosts := p.Groups[group].Hosts
	taken := map[int]bool{}
	for _, u := range p.vacantUnits(l, group) {
		if found.Joined == most {
			break
		}
		for _, n := range u.nodes {
			taken[n] = true
		}
		found.Nodes = append(found.Nodes, u.nodes...)
		found.Joined++
	}
	var coming, planned int64
	for k := range l.Classes {
		switch class := &l.Classes[k]; {
		case class.Shape.Group != group || !class.Vacant():
		case class.Phase != OnTheWay:
			class.Members = slices.DeleteFunc(slices.Clone(class.Members), func(n int) bool { return taken[n] })
			class.Count = int64(len(class.Members))
		case class.planned:
			planned += class.Count
		default:
			coming += class.Count
		}
	}
	found.Coming = min(coming/hosts, most-found.Joined)
	found.Planned = min((coming+planned)/hosts-coming/hosts, most-found.Joined-found.Coming)
	l.withdraw(group, (found.Coming+found.Planned)*hosts)
	l.Classes = slices.DeleteFunc(l.Classes, func(class NodeClass) bool { return class.Count == 0 })
	return found
}

// withdraw takes vacant pods on their way off the ledger, those that this plan launches last.
func (l *Ledger) withdraw(group int, pods int64) {
	for _, planned := range []bool{false, true} {
		for k := range l.Classes {
			class := &l.Classes[k]
			if class.Shape.Group != group || class.planned != planned || class.Phase != OnTheWay ||
				!class.Vacant() {
				continue
			}
			n := min(class.Count, pods)
			pods -= n
			if class.Count -= n; class.Members != nil {
				class.Members = class.Members[:class.Count:class.Count]
			}
		}
	}
}

// vacantUnits lists the vacant replicas of a group whose workers have all joined.
func (p *placer) vacantUnits(l *Ledger, group int) []vacantUnit {
	hosts, byName := p.Groups[group].Hosts, map[string]*vacantUnit{}
	for k := range l.Classes {
		class := &l.Classes[k]
		if class.Shape.Group != group || class.Phase == OnTheWay || !class.Vacant() {
			continue
		}
		for _, n := range class.Members {
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
			u.phase, u.idle = max(u.phase, class.Phase), min(u.idle, node.IdleSeconds)
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
func (p *placer) openAgain(l *Ledger, offered func(group int) bool) {
	l.Stepwise, l.Tracing, l.traces, l.Log, l.Waits = false, true, nil, nil, nil
	clear(l.Launched)
	l.Classes = slices.DeleteFunc(l.Classes, func(class NodeClass) bool {
		return class.Vacant() && class.Shape.Group >= 0 && !offered(class.Shape.Group)
	})
	for k := range l.Classes {
		class := &l.Classes[k]
		class.hidden = false
		if class.touched {
			// A class that demand uses is never vacant again, whatever is free on it.
			class.touched, class.used = false, true
		}
		overdue := func(n int) bool { return p.overIdle(&p.Nodes[n]) }
		if class.Phase >= Overdue || !slices.ContainsFunc(class.Members, overdue) {
			continue
		}
		late := *class
		late.Phase = Overdue
		late.Members = slices.DeleteFunc(slices.Clone(class.Members), func(n int) bool { return !overdue(n) })
		class.Members = slices.DeleteFunc(slices.Clone(class.Members), overdue)
		class.Count, late.Count = int64(len(class.Members)), int64(len(late.Members))
		l.Classes = append(l.Classes, late)
	}
	l.Classes = slices.DeleteFunc(l.Classes, func(class NodeClass) bool { return class.Count == 0 })
	slices.SortStableFunc(l.Classes, func(a, b NodeClass) int { return cmp.Compare(a.Phase, b.Phase) })
}

// addLaunched books pods of a group and adds them to the ledger as free.
func (p *placer) addLaunched(l *Ledger, group int, pods int64) {
	for _, class := range l.Launch(&p.Groups[group], pods) {
		class.Size = p.sizeOn(class.Shape, class.Free)
		l.Classes = append(l.Classes, class)
	}
}

// capRoom lowers the room of a ledger's groups to what the in-flight caps allow beside the given pods, and closes the
// groups that are not open.
func (p *placer) capRoom(l *Ledger, given []int64, open func(group int) bool) {
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
		l.Room[i] = min(l.Room[i], room-room%g.Hosts)
	}
	l.Spare = min(l.Spare, max(OrUnbounded(p.Policy.MaxInFlight)-all, 0))
	l.tries, l.lifted = false, false
	l.inFlightCaps = inFlightCaps{cut: make([]int64, len(p.Groups)), asked: make([]int64, len(p.Groups))}
}
