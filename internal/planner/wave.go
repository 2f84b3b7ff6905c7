package planner

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/placing"
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
	return p.Policy.MaxInFlight > 0 || slices.ContainsFunc(p.Groups, func(g fleet.Group) bool { return p.MostInFlight(&g) < vector.MaxCount })
}

// exceedsCaps reports whether launching more pods than are allowed on their way at once.
func (p *planning) exceedsCaps(given []int64) bool {
	var all int64
	exceeds := false
	for i, n := range given {
		asked := p.Groups[i].Pending() + n
		all += asked
		exceeds = exceeds || n > 0 && asked > p.MostInFlight(&p.Groups[i])
	}
	return exceeds || vector.Sum(given) > 0 && all > placing.OrUnbounded(p.Policy.MaxInFlight)
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
		p.Uncut = whole
		c := p.complete(given, p.round(given, placing.Fullest), placing.Fullest)
		next, found := p.drop(given, c.given, c.out)
		more, open := vector.Sum(next) > vector.Sum(given), p.openUnderCaps(next)
		p.Uncut = nil
		given, out = next, found
		if !more || !open {
			break
		}
		p.Steps = 0
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
	l := p.Open(nil, given)
	return slices.ContainsFunc(p.Groups, func(g fleet.Group) bool { return min(l.Room[g.Shape.Group], l.Spare) >= g.Hosts })
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
	own, most := g.Pending()+given[i], w.Policy.MaxInFlight
	switch {
	case own+g.Hosts > w.MostInFlight(g):
		code, setting := model.CodeInFlight, "maxInFlightPerGroup"
		if g.InFlight == w.MostInFlight(g) {
			code, setting = model.CodeConservative, conservativeMode
		}
		return model.Reason{Code: code, Message: fmt.Sprintf("%s lets group %s have %d on the way at once%s", setting, g.Name, w.MostInFlight(g),
			onTheWayNow("has", own, given[i], w.MostInFlight(g)))}, true
	case all+g.Hosts > placing.OrUnbounded(most):
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
	if w.Policy.MaxInFlight > 0 {
		names = append(names, fmt.Sprintf("maxInFlight %d", w.Policy.MaxInFlight))
	}
	switch most := w.MostInFlight(g); {
	case most == vector.MaxCount:
	case most == g.InFlight:
		names = append(names, conservativeMode)
	default:
		names = append(names, fmt.Sprintf("maxInFlightPerGroup %d", most))
	}
	return strings.Join(names, " and ")
}

// servedOn reports whether a claim has room on a ledger; nil has none.
func (p *planning) servedOn(l *placing.Ledger, c claim) bool {
	if l == nil {
		return false
	}
	b := p.NewBatch(c.purpose, c.items, l.How)
	p.Place(l, b)
	return b.Served()
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
