package place

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// limits bound what may still be launched on a ledger.
type limits struct {
	// room counts the pods that each group may still launch, spare those that all groups together may.
	room  []int64
	spare int64
	// ceilings say how many pods fit together on the nodes; nil if nothing limits a group. on is where they are, nil if
	// the nodes are full.
	ceilings *landing.SharedNodes
	on       *landing.Taken
	// quotas bound what the pods of groups may have together; nil if nothing bounds a group. left is what is left.
	quotas *landing.Quotas
	left   []raydemand.Amount
}

// copyFrom makes limits equal to others. It reuses memory.
func (l *limits) copyFrom(other *limits) {
	old := *l
	*l = *other
	l.room, l.left = append(old.room[:0], other.room...), append(old.left[:0], other.left...)
	if other.on != nil {
		if l.on = old.on; l.on == nil {
			l.on = &landing.Taken{}
		}
		l.on.CopyFrom(other.on)
	}
}

// A plan with more pods on their way than Policy.MaxInFlight and upscalingMode Conservative allow is carried out in
// steps. The choice of all pods to launch ignores these caps, because they delay launches and must not make them more
// expensive. A step then launches pods in the order in which demand was placed on them, until a cap is reached: those
// of minimums, of request_resources, of gangs and of requests. Nothing overtakes demand that waits for the cap on all
// groups. Pods that only try whether a node comes are launched after all others. Of equal gangs, only as many get their
// pods as known nodes hold; for the others, nothing but tries is launched.

// maxCapRounds limits how many steps are joined into one. Nearly always the first step uses up a cap.
const maxCapRounds = 8

// ConservativeMode names the only cap that does not come from the policy.
const ConservativeMode = "upscalingMode Conservative"

// exceedsCaps reports whether launches exceed an in-flight cap.
func (p *Search) exceedsCaps(given []int64) bool {
	for i, n := range given {
		if n > 0 && p.Groups[i].Pending()+n > p.Groups[i].InFlight {
			return true
		}
	}
	return Sum(given) > 0 && p.AllInFlight(given) > OrUnbounded(p.Policy.MaxInFlight) ||
		p.TriesPools() && p.SharedNodes.Occupied(given) == nil
}

// capInFlight reduces a plan to what may be requested now, and records what is delayed. A step is complete if the plan
// after it, with its pods on their way, adds nothing, because the next cycle makes that plan.
func (p *Search) capInFlight(whole []int64, planned Outcome) ([]int64, Outcome) {
	if !p.exceedsCaps(whole) {
		return whole, planned
	}
	given, tried := make([]int64, len(p.Groups)), make([]int64, len(p.Groups))
	for range maxCapRounds {
		next := p.underCaps(given, tried, whole, &planned)
		if slices.Equal(next, given) {
			break
		}
		given = next
		whole, planned = p.settle(given)
	}
	p.Held = make([]int64, len(given))
	for i := range p.Held {
		p.Held[i] = max(whole[i]-given[i], 0)
	}
	// One more round, in which nothing is launched, shows which demand waits for the delayed pods.
	for i := range p.Claims {
		p.Claims[i].Delayed = !slices.Contains(planned.Claims, i)
	}
	p.closed = true
	out := p.round(given, order{how: fullest})
	p.closed = false
	for n, stay := range planned.Stays {
		out.Stays[n] = max(out.Stays[n], stay)
	}
	return given, out
}

// need is the pods, by group, that some demand needs beside all demand before it. Equal gangs have one need; other
// demand, with 0 gangs, has some use of each pod.
type need struct {
	of    *Gang
	gangs int64
	pods  []int64
}

// needs lists what the pods of a plan are for, beside those given before, in the order in which demand was placed.
func (p *Search) needs(before, whole []int64, out *Outcome) (all []need) {
	gangs := map[*Gang]int64{}
	for _, r := range out.Runs {
		gangs[r.Gangs[0]] = int64(len(r.Gangs))
	}
	reached, used, ledger := slices.Clone(before), make([]int64, len(p.Groups)), ""
	add := func(of *Gang, i int, upTo int64) {
		if upTo = min(RoundUp(upTo, p.Groups[i].Hosts), whole[i]); upTo <= reached[i] {
			return
		}
		if of == nil || len(all) == 0 || all[len(all)-1].of != of {
			all = append(all, need{of, gangs[of], make([]int64, len(p.Groups))})
		}
		all[len(all)-1].pods[i] += upTo - reached[i]
		reached[i] = upTo
	}
	for i := range p.Groups {
		add(nil, i, p.Groups[i].MinPods-p.Groups[i].Remaining())
	}
	for _, e := range out.Log {
		if e.Opened == 0 {
			continue
		}
		on := "" // each call of request_resources is placed on a ledger of its own
		if e.Item.Gang == nil {
			on = e.Purpose
		}
		if on != ledger {
			ledger = on
			clear(used)
		}
		used[e.Group] += e.Opened
		add(e.Item.Gang, e.Group, used[e.Group])
	}
	for i, n := range whole {
		add(nil, i, n)
	}
	return all
}

// underCaps returns how much of a plan the in-flight caps allow, with the pods given before. tried are those of them
// that are on no known node, at most a replica of each group: it adds its own.
func (p *Search) underCaps(before, tried, whole []int64, out *Outcome) []int64 {
	given, needs := slices.Clone(before), p.needs(before, whole, out)
	all := p.AllInFlight(given)
	spare, alone := OrUnbounded(p.Policy.MaxInFlight)-all, all == 0
	known := slices.Clone(before)
	for i, n := range tried {
		known[i] -= n
	}
	onKnown := p.Known.Occupied(known)
	for nodes, on, try := p.Known, onKnown, false; ; nodes, try = p.SharedNodes, true {
		if try {
			on = nodes.Occupied(given)
		}
		for k := range needs {
			need := &needs[k]
			gangs := need.gangs
			for i, n := range need.pods {
				if n > 0 && gangs > 0 && !try {
					gangs = min(gangs, p.roomOn(nodes, on, i, try)*need.gangs/n)
				}
			}
			for i, n := range need.pods {
				g := &p.Groups[i]
				if need.gangs > 0 && !try {
					n = RoundUp((n*gangs+need.gangs-1)/need.gangs, g.Hosts)
				}
				n = min(n, p.roomUnderCap(i, given), p.roomOn(nodes, on, i, try))
				n -= n % g.Hosts
				waits := n > spare
				if waits {
					if n = spare - spare%g.Hosts; n == 0 && alone {
						n = g.Hosts // a replica that is larger than the cap is launched alone
					}
				}
				if spare -= n; waits {
					spare = 0
				}
				if n > 0 {
					nodes.Occupy(on, i, n)
					given[i], need.pods[i], alone = given[i]+n, need.pods[i]-n, false
					if try {
						held := min(n, p.Known.Room(onKnown, i))
						p.Known.Occupy(onKnown, i, held)
						tried[i] = min(tried[i]+n-held, g.Hosts)
					}
				}
			}
		}
		if try {
			return given
		}
	}
}

// roomOn returns how many pods of a group have room on nodes that are known, or else may be tried.
func (p *Search) roomOn(nodes *landing.SharedNodes, on *landing.Taken, i int, try bool) int64 {
	tries := p.Groups[i].Trying()
	switch {
	case tries && !try, try && !tries && len(p.SharedNodes.UnprovenPools(i)) == 0:
		return 0
	case !p.TriesPools():
		return MaxCount // the plan keeps to what the nodes hold
	}
	return nodes.Room(on, i)
}

func (p *Search) HeldOf(i int) int64 {
	if p.Held == nil {
		return 0
	}
	return p.Held[i]
}

func OrUnbounded(most int) int64 {
	if most <= 0 {
		return MaxCount
	}
	return int64(most)
}

// AllInFlight counts the pods of all groups on their way, with those given.
func (r *Fleet) AllInFlight(given []int64) int64 {
	all := Sum(given)
	for i := range r.Groups {
		all += r.Groups[i].Pending()
	}
	return all
}

// roomUnderCap returns how many pods of a group its in-flight cap allows beside those given. A replica that is larger
// than the cap is launched alone.
func (r *Fleet) roomUnderCap(i int, given []int64) int64 {
	g := &r.Groups[i]
	asked := g.Pending() + given[i]
	room := max(g.InFlight-asked, 0)
	if asked == 0 {
		room = max(room, g.Hosts)
	}
	return room - room%g.Hosts
}

// bindLimits sets what may be launched on a ledger beside the given pods: what groups, the bound on all workers, quotas
// and nodes allow.
func (p *Search) bindLimits(l *Ledger, given []int64) {
	l.spare, l.room = p.Spare(given), l.room[:0]
	for i := range p.Groups {
		g := &p.Groups[i]
		room := g.room(given[i])
		if p.knownOnly && g.Trying() {
			room = min(room, RoundUp(max(0, g.MinPods-g.Remaining()-given[i]), g.Hosts))
		}
		l.room = append(l.room, room)
	}
	if p.closed {
		clear(l.room)
		l.spare = 0
	}
	l.quotas, l.left = p.Quotas, p.Quotas.Left(given)
	// Pools of which nothing shows that they have room do not count while groups that fit come first, and then without
	// a bound.
	if l.ceilings = p.Hoped; p.knownOnly {
		l.ceilings = p.Known
	}
	l.on = l.ceilings.Occupied(given)
	l.lowerRoom()
}

// occupy places launched pods on nodes and takes them from quotas, and lowers the room of all groups that compete with
// them.
func (l *Ledger) occupy(group int, count int64) {
	if l.quotas == nil && !l.ceilings.Limits(group) {
		return
	}
	l.quotas.Take(l.left, group, count)
	if l.ceilings.Limits(group) {
		l.ceilings.Occupy(l.on, group, count)
	}
	l.lowerRoom()
}

// lowerRoom lowers the room of each group to what quotas and nodes leave.
func (l *Ledger) lowerRoom() {
	for i := range l.room {
		l.room[i] = min(l.room[i], l.quotas.Room(l.left, i), l.ceilings.Room(l.on, i))
	}
}

// LimitsConflict reports whether the group's minimum is above its maximum. The operator then stops reconciling the
// whole cluster, so the plan neither launches nor stops pods of the group.
func (g *Group) LimitsConflict() bool { return g.MinPods > g.MaxPods }

// room returns how many more pods can be launched in addition to those given, in whole replicas, regardless of
// in-flight caps. Nodes that are being stopped still count: they exist until they are drained.
func (g *Group) room(given int64) int64 {
	if g.Blocked != "" {
		return 0
	}
	n := max(0, g.MaxPods-g.Current-given)
	return n - n%g.Hosts
}

// Spare returns how many more pods the bound on all workers allows.
func (r *Fleet) Spare(given []int64) int64 {
	spare := r.Bound
	for i := range r.Groups {
		spare -= r.Groups[i].Current + given[i]
	}
	return max(spare, 0)
}
