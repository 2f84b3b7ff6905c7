package planner

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// A plan that has more pods on their way than Policy.MaxInFlight, MaxInFlightPerGroup and upscalingMode Conservative allow is
// carried out in waves. Which pods are launched in all is decided with no regard to these caps: they hold launches up and shall not make them dearer. A
// wave then places all demand once more, in the order of planning, with those pods to choose from and the caps as limits:
//
//	minima, requests        as many as the caps allow
//	request_resources       in part, if the whole of it is planned
//	gangs                   whole; one that the caps alone keep from its pods holds back what comes after it, so that nothing
//	                        overtakes it for ever; one that is larger than a cap goes when nothing else counts under that cap

// maxWaves bounds how many waves are joined into one. Nearly always the first uses a cap up; what it leaves may be
// little enough for a next one only where several caps bind, or a cap is no multiple of a replica.
const maxWaves = 8

// conservativeMode names the cap that is not the policy's.
const conservativeMode = "upscalingMode Conservative"

// capped reports whether there is any cap on pods on their way.
func (p *planning) capped() bool {
	return p.policy.MaxInFlight > 0 || slices.ContainsFunc(p.Groups, func(g fleet.Group) bool { return p.mostInFlight(&g) < vector.MaxCount })
}

// mostInFlight is how many pods of a group may be on their way at once.
func (p *Placer) mostInFlight(g *fleet.Group) int64 {
	return min(orUnbounded(p.policy.MaxInFlightPerGroup), g.InFlight)
}

func orUnbounded(most int) int64 {
	if most <= 0 {
		return vector.MaxCount
	}
	return int64(most)
}

// exceedsCaps reports whether launching more pods than are allowed on their way at once.
func (p *planning) exceedsCaps(given []int64) bool {
	var all int64
	exceeds := false
	for i, n := range given {
		asked := p.Groups[i].Pending() + n
		all += asked
		exceeds = exceeds || n > 0 && asked > p.mostInFlight(&p.Groups[i])
	}
	return exceeds || vector.Sum(given) > 0 && all > orUnbounded(p.policy.MaxInFlight)
}

// wave cuts a plan down to what may be asked for now, and notes what is held back. A wave is complete when the plan that
// follows it, with its pods on their way, adds nothing: the next cycle makes that plan.
func (p *planning) wave(whole []int64, planned outcome) ([]int64, outcome) {
	if !p.capped() || !p.exceedsCaps(whole) {
		return whole, planned
	}
	given := make([]int64, len(p.Groups))
	var out outcome
	for range maxWaves {
		p.whole = whole
		c := p.complete(given, p.round(given, fullest), fullest)
		next, found := p.drop(given, c.given, c.out)
		more, open := vector.Sum(next) > vector.Sum(given), p.openUnderCaps(next)
		p.whole = nil
		given, out = next, found
		if !more || !open {
			break
		}
		p.steps = 0
		whole, _ = p.settle(given)
		if vector.Sum(whole) == vector.Sum(given) {
			break
		}
	}
	p.held = make([]int64, len(given))
	for i := range p.held {
		p.held[i] = max(whole[i]-given[i], 0)
	}
	for n, used := range planned.used {
		out.used[n] = out.used[n] || used // it waits for those who are held back
	}
	return given, out
}

// openUnderCaps reports whether a wave could go on.
func (p *planning) openUnderCaps(given []int64) bool {
	l := p.open(nil, given)
	return slices.ContainsFunc(p.Groups, func(g fleet.Group) bool { return min(l.room[g.Shape.Group], l.spare) >= g.Hosts })
}

// caps is what the caps on pods on their way take from a ledger's limits.
type caps struct {
	// asked counts the pods on their way by group before the ledger's own launches.
	asked []int64
	// cut is what is taken from the room of each group, cutAll from what all may launch together.
	cut    []int64
	cutAll int64
}

func (c *caps) copyFrom(other *caps) {
	c.asked, c.cut, c.cutAll = append(c.asked[:0], other.asked...), append(c.cut[:0], other.cut...), other.cutAll
}

// capLedger lowers a ledger's limits to what the wave may launch. A replica that is larger than a cap goes alone.
func (p *Placer) capLedger(l *ledger, given []int64) {
	var all int64
	least := int64(vector.MaxCount)
	l.asked, l.cut = make([]int64, len(p.Groups)), make([]int64, len(p.Groups))
	for i := range p.Groups {
		g := &p.Groups[i]
		l.asked[i] = g.Pending() + given[i]
		all += l.asked[i]
		l.room[i] = min(l.room[i], p.whole[i]-given[i])
		room := max(p.mostInFlight(g)-l.asked[i], 0)
		if l.asked[i] == 0 {
			room = max(room, g.Hosts)
		}
		l.cut[i] = l.room[i]
		l.room[i] = min(l.room[i], room-room%g.Hosts)
		l.cut[i] -= l.room[i]
		if l.room[i] > 0 {
			least = min(least, g.Hosts)
		}
	}
	spare := max(orUnbounded(p.policy.MaxInFlight)-all, 0)
	if all == 0 && least < vector.MaxCount {
		spare = max(spare, least)
	}
	l.cutAll = l.spare
	l.spare = min(l.spare, spare)
	l.cutAll -= l.spare
}

// lift gives back what the caps take, and recap takes it again, from what is left.
func (l *ledger) lift() {
	for i, n := range l.cut {
		l.room[i] += n
	}
	l.spare += l.cutAll
}

func (l *ledger) recap() {
	for i, cut := range l.cut {
		left := l.room[i]
		l.room[i] = max(left-cut, 0)
		l.cut[i] = left - l.room[i]
	}
	left := l.spare
	l.spare = max(left-l.cutAll, 0)
	l.cutAll = left - l.spare
}

// holds reports whether the caps keep some group from launches that an option could use.
func (l *ledger) holds(p *Placer, gang *fleet.Gang) bool {
	return slices.ContainsFunc(p.Groups, func(g fleet.Group) bool {
		i := g.Shape.Group
		return (l.cut[i] > 0 || l.cutAll > 0 && l.room[i] > 0) && gang.Suits(g.Shape)
	})
}

// placeCapped places the first of some equal gangs, that found no room under the caps, if it may go beyond them. If it has
// to wait for the caps alone, what it waits for is kept for it.
func (p *Placer) placeCapped(l *ledger, gangs []*fleet.Gang) (*ledger, int) {
	if len(l.cut) == 0 || len(gangs) == 0 || !l.holds(p, gangs[0]) {
		return l, 0
	}
	trial, served := p.placeCrowd(p.uncapped(l), gangs[:1])
	switch {
	case served == 0:
	case l.alone(trial.launched):
		trial.recap()
		p.release(l)
		return trial, served
	default:
		l.reserve(trial.launched)
	}
	p.release(trial)
	return l, 0
}

// alone reports whether nothing else counts under the caps that launches would go beyond.
func (l *ledger) alone(launched []int64) bool {
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

// reserve keeps under each cap that is in the way all that is left for launches that wait for it. It counts as asked for, so that
// no other goes alone meanwhile.
func (l *ledger) reserve(launched []int64) {
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

// inFlightLimit says which cap keeps a group from one more replica now.
func (w *words) inFlightLimit(i int, given []int64) (model.Reason, bool) {
	if w.held == nil {
		return model.Reason{}, false
	}
	g := &w.Groups[i]
	var all int64
	for k := range w.Groups {
		all += w.Groups[k].Pending() + given[k]
	}
	own, most := g.Pending()+given[i], w.policy.MaxInFlight
	switch {
	case own+g.Hosts > w.mostInFlight(g):
		code, setting := model.CodeInFlight, "maxInFlightPerGroup"
		if g.InFlight == w.mostInFlight(g) {
			code, setting = model.CodeConservative, conservativeMode
		}
		return model.Reason{Code: code, Message: fmt.Sprintf("%s lets group %s have %d on the way at once%s", setting, g.Name, w.mostInFlight(g),
			onTheWayNow("has", own, given[i], w.mostInFlight(g)))}, true
	case all+g.Hosts > orUnbounded(most):
		return model.Reason{Code: model.CodeInFlight, Message: fmt.Sprintf("maxInFlight lets all groups together have %d on the way at once%s", most, onTheWayNow("have", all, vector.Sum(given), int64(most)))}, true
	case w.held[i] > 0:
		return model.Reason{Code: model.CodeInFlight, Message: fmt.Sprintf("group %s has %d on the way; what comes first waits until more fit under %s", g.Name, own, w.capNames(g))}, true
	}
	return model.Reason{}, false
}

// onTheWayNow says how many are, and why a plan launches more than a cap allows.
func onTheWayNow(have string, now, given, most int64) string {
	if now > most && given > 0 {
		return fmt.Sprintf("; %s launched now, since a gang or a replica that is larger goes whole, alone", phrase.Pods(given))
	}
	return fmt.Sprintf(" (%s %d)", have, now)
}

// capNames names the caps that a group is under.
func (w *words) capNames(g *fleet.Group) string {
	var names []string
	if w.policy.MaxInFlight > 0 {
		names = append(names, fmt.Sprintf("maxInFlight %d", w.policy.MaxInFlight))
	}
	switch most := w.mostInFlight(g); {
	case most == vector.MaxCount:
	case most == g.InFlight:
		names = append(names, conservativeMode)
	default:
		names = append(names, fmt.Sprintf("maxInFlightPerGroup %d", most))
	}
	return strings.Join(names, " and ")
}

// uncapped returns a copy of a ledger without caps, or nil where there are none.
func (p *Placer) uncapped(l *ledger) *ledger {
	if len(l.cut) == 0 {
		return nil
	}
	lifted := p.trial(l)
	lifted.lift()
	return lifted
}

// servedOn reports whether a claim has room on a ledger; nil has none.
func (p *planning) servedOn(l *ledger, c claim) bool {
	if l == nil {
		return false
	}
	b := p.newBatch(c.purpose, c.items, l.how)
	p.place(l, b)
	return b.served()
}

// reserveRest reserves what is still to be launched of what a claim needs.
func (l *ledger) reserveRest(needed, launched []int64) {
	rest := slices.Clone(l.launched)
	for i := range rest {
		rest[i] += max(needed[i]-launched[i], 0)
	}
	l.reserve(rest)
}

func (p *planning) heldOf(i int) int64 {
	if p.held == nil {
		return 0
	}
	return p.held[i]
}

// following says how many pods of a group follow a launch.
func (w *words) following(i int) string {
	if n := w.heldOf(i); n > 0 {
		return fmt.Sprintf("; %d more when earlier ones have joined, because of %s", n, w.capNames(&w.Groups[i]))
	}
	return ""
}

func (c *claim) counts() []int64 {
	counts := make([]int64, len(c.items))
	for i, it := range c.items {
		counts[i] = it.Request.Count
	}
	return counts
}

// leftOf counts the bundles of each item of a claim that are not served.
func (o *outcome) leftOf(i int, c claim) []int64 {
	if at := slices.Index(o.claims, i); at >= 0 {
		return o.claimed[at]
	}
	return make([]int64, len(c.items))
}
