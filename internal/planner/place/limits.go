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
	// asked counts the pods on their way, by group, before the ledger's own launches. cut is how much the in-flight
	// caps reduce each group's room, cutAll how much they reduce that of all groups together.
	asked, cut []int64
	cutAll     int64
	// ceilings say how many pods fit together on the nodes; nil if nothing limits a group. on is where they are, nil if
	// the nodes are full.
	ceilings *landing.SharedNodes
	on       *landing.Taken
	// tries: the ceilings allow one replica in pools that may have no room, like an in-flight cap. lifted: they do not
	// bound the ledger now.
	tries, lifted bool
	// quotas bound what the pods of groups may have together; nil if nothing bounds a group. left is what is left.
	quotas *landing.Quotas
	left   []raydemand.Amount
}

// copyFrom makes limits equal to others. It reuses memory.
func (l *limits) copyFrom(other *limits) {
	old := *l
	*l = *other
	l.room, l.left = append(old.room[:0], other.room...), append(old.left[:0], other.left...)
	l.asked, l.cut = append(old.asked[:0], other.asked...), append(old.cut[:0], other.cut...)
	if other.on != nil {
		if l.on = old.on; l.on == nil {
			l.on = &landing.Taken{}
		}
		l.on.CopyFrom(other.on)
	}
}

// A plan with more pods on their way than Policy.MaxInFlight and upscalingMode Conservative allow is carried out in
// steps. The choice of all pods to launch ignores these caps, because they delay launches and must not make them more
// expensive. A step then places all demand once more, in the order of planning, with those pods to choose from and the
// caps as limits:
//
//	minimums, requests      as many as the caps allow
//	request_resources       in part, if the whole of it is planned
//	gangs                   whole; one that only the caps delay also delays the demand after it, so that nothing
//	                        overtakes it forever; one that is larger than a cap is launched when nothing else
//	                        counts toward the cap

// maxCapRounds limits how many steps are joined into one. Nearly always the first step uses up a cap. What is left can
// be enough for another step only if several caps apply, or if a cap is not a multiple of a replica.
const maxCapRounds = 8

// ConservativeMode names the only cap that does not come from the policy.
const ConservativeMode = "upscalingMode Conservative"

// capped reports whether any in-flight cap applies.
func (p *Search) capped() bool {
	return p.Policy.MaxInFlight > 0 || p.TriesPools() ||
		slices.ContainsFunc(p.Groups, func(g Group) bool { return g.InFlight < MaxCount })
}

// exceedsCaps reports whether launches exceed an in-flight cap.
func (p *Search) exceedsCaps(given []int64) bool {
	var all int64
	exceeds := false
	for i, n := range given {
		asked := p.Groups[i].Pending() + n
		all += asked
		exceeds = exceeds || n > 0 && asked > p.Groups[i].InFlight
	}
	exceeds = exceeds || p.TriesPools() && p.SharedNodes.Occupied(given) == nil
	return exceeds || Sum(given) > 0 && all > OrUnbounded(p.Policy.MaxInFlight)
}

// capInFlight reduces a plan to what may be requested now, and records what is delayed. A step is complete if the plan
// after it, with its pods on their way, adds nothing, because the next cycle makes that plan.
func (p *Search) capInFlight(whole []int64, planned Outcome) ([]int64, Outcome) {
	if !p.capped() || !p.exceedsCaps(whole) {
		return whole, planned
	}
	given := make([]int64, len(p.Groups))
	var out Outcome
	for range maxCapRounds {
		p.uncut = whole
		c := p.complete(given, p.round(given, fullest), fullest)
		trials := p.trials(&c.out)
		c = p.drop(p.withoutTries(given, c.given), c, -1, &trials)
		next, found := c.given, c.out
		p.uncut = nil
		more := Sum(next) > Sum(given)
		given, out = next, found
		if !more || !p.openUnderCaps(given) {
			break
		}
		whole, _ = p.settle(given)
		if Sum(whole) == Sum(given) {
			break
		}
	}
	p.Held = make([]int64, len(given))
	for i := range p.Held {
		p.Held[i] = max(whole[i]-given[i], 0)
	}
	for n, stay := range planned.Stays {
		out.Stays[n] = max(out.Stays[n], stay) // it waits for the delayed pods
	}
	return given, out
}

// withoutTries returns the launches that a step keeps: those before it, and, if some of it only tries whether a node
// comes, those of groups whose nodes are known. A try must not take the place of a pod that is known to come.
func (p *Search) withoutTries(before, given []int64) []int64 {
	kept, tries := slices.Clone(given), false
	if p.TriesPools() {
		kept = p.KnownToFit(given, before)
		tries = !slices.Equal(kept, given)
	}
	for i := range p.Groups {
		if p.Groups[i].Trying() && given[i] > before[i] {
			kept[i], tries = before[i], true
		}
	}
	if !tries {
		return before
	}
	return kept
}

// openUnderCaps reports whether a step could continue. Groups that the last plan without the caps did not use count:
// the next one, beside what is launched, may use them.
func (p *Search) openUnderCaps(given []int64) bool {
	p.uncut = slices.Repeat([]int64{MaxCount}, len(p.Groups))
	l := p.open(nil, given)
	p.uncut = nil
	return slices.ContainsFunc(
		p.Groups,
		func(g Group) bool { return min(l.room[g.Shape.group], l.spare) >= g.Hosts },
	)
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

// roomUnderCap returns how many pods of a group its in-flight cap allows beside those given, and how many are on their
// way. A replica that is larger than the cap is launched alone.
func (r *Fleet) roomUnderCap(i int, given []int64) (room, asked int64) {
	g := &r.Groups[i]
	asked = g.Pending() + given[i]
	if room = max(g.InFlight-asked, 0); asked == 0 {
		room = max(room, g.Hosts)
	}
	return room - room%g.Hosts, asked
}

// capLedger lowers a ledger's limits to what the step may launch.
func (p *Search) capLedger(l *Ledger, given []int64) {
	var all int64
	least := int64(MaxCount)
	l.asked, l.cut = make([]int64, len(p.Groups)), make([]int64, len(p.Groups))
	for i := range p.Groups {
		room, asked := p.roomUnderCap(i, given)
		l.asked[i] = asked
		all += asked
		l.cut[i] = min(l.room[i], p.uncut[i]-given[i])
		l.room[i] = min(l.cut[i], room)
		l.cut[i] -= l.room[i]
		if l.tries {
			l.lowerRoomOf(i)
		}
		if l.room[i] > 0 {
			least = min(least, p.Groups[i].Hosts)
		}
	}
	spare := max(OrUnbounded(p.Policy.MaxInFlight)-all, 0)
	if all == 0 && least < MaxCount {
		spare = max(spare, least)
	}
	l.cutAll = l.spare
	l.spare = min(l.spare, spare)
	l.cutAll -= l.spare
}

// liftCaps restores what the caps remove; restoreCaps removes it again from what is left.
func (l *Ledger) liftCaps() {
	for i, n := range l.cut {
		l.room[i] += n
	}
	l.spare += l.cutAll
	l.lifted = l.tries
}

func (l *Ledger) restoreCaps() {
	for i, cut := range l.cut {
		left := l.room[i]
		l.room[i] = max(left-cut, 0)
		l.cut[i] = left - l.room[i]
	}
	left := l.spare
	l.spare = max(left-l.cutAll, 0)
	l.cutAll = left - l.spare
	if l.lifted = false; l.tries {
		l.lowerRoom()
	}
}

// reserve keeps all that is left under each limiting cap for launches that are waiting for it. It counts as requested,
// so that no other gang exceeds the cap in the meantime.
func (l *Ledger) reserve(launched []int64) {
	var all int64
	for i := range launched {
		need := launched[i] - l.launched[i]
		all += need
		if need > l.room[i] {
			l.asked[i] += max(l.room[i], 1)
			l.cut[i] += l.room[i]
			l.room[i] = 0
		}
	}
	if all > l.spare {
		l.cutAll += l.spare
		l.spare = 0
		for i := range l.asked {
			l.asked[i]++
		}
	}
}

// uncapped returns a copy of a ledger without caps, or nil if it has none.
func (p *Search) uncapped(l *Ledger) *Ledger {
	if len(l.cut) == 0 {
		return nil
	}
	lifted := p.trial(l)
	lifted.liftCaps()
	return lifted
}

// reserveRest reserves the launches that a claim still needs.
func (l *Ledger) reserveRest(needed, launched []int64) {
	rest := slices.Clone(l.launched)
	for i := range rest {
		rest[i] += max(needed[i]-launched[i], 0)
	}
	l.reserve(rest)
}

// cappedFor reports whether the caps prevent launches of a group that an option could use.
func (l *Ledger) cappedFor(p *Search, gang *Gang) bool {
	return slices.ContainsFunc(p.Groups, func(g Group) bool {
		i := g.Shape.group
		return (l.cut[i] > 0 || l.cutAll > 0 && l.room[i] > 0) && gang.suits(g.Shape)
	})
}

// placeBeyondCaps places the first of some equal gangs that found no room under the caps, if it may exceed them. If it
// waits only for the caps, the launches that it needs are reserved.
func (p *Search) placeBeyondCaps(l *Ledger, gangs []*Gang) (*Ledger, int) {
	if len(l.cut) == 0 || len(gangs) == 0 || !l.cappedFor(p, gangs[0]) {
		return l, 0
	}
	trial, served := p.placeIdentical(p.uncapped(l), gangs[:1])
	switch {
	case served == 0:
	case p.tryUnproven(l, trial.launched):
		l.reserve(trial.launched)
	case l.alone(trial.launched):
		trial.restoreCaps()
		p.release(l)
		return trial, served
	default:
		l.reserve(trial.launched)
	}
	p.release(trial)
	return l, 0
}

// tryUnproven reports whether launches need more pods than known nodes hold and may be tried. It then launches what may
// be of the groups that are tried: once such a pod has joined, the gang is launched whole.
func (p *Search) tryUnproven(l *Ledger, launched []int64) bool {
	if l.allowsTries(p, launched) {
		return false
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		if !g.Trying() && len(l.ceilings.UnprovenPools(i)) == 0 {
			continue
		}
		n := min(launched[i]-l.launched[i], l.room[i], l.spare)
		if n -= n % g.Hosts; n > 0 {
			l.classes = append(l.classes, l.launch(g, n)...)
		}
	}
	return true
}

// allowsTries reports whether launches try no more than they may, whatever the other caps are.
func (l *Ledger) allowsTries(p *Search, launched []int64) bool {
	var on *landing.Taken
	if l.tries && l.on != nil {
		on = &landing.Taken{}
		on.CopyFrom(l.on)
	}
	for i := range p.Groups {
		need := launched[i] - l.launched[i]
		if p.Groups[i].Trying() && need > l.room[i] || l.tries && l.ceilings.Occupy(on, i, need) < need {
			return false
		}
	}
	return true
}

// alone reports whether nothing else counts toward the caps that launches would exceed.
func (l *Ledger) alone(launched []int64) bool {
	var all, asked int64
	for i := range launched {
		own := l.asked[i] + l.launched[i]
		need := launched[i] - l.launched[i]
		all, asked = all+need, asked+own
		if need > l.room[i] && own > 0 {
			return false
		}
	}
	return all <= l.spare || asked == 0
}

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
