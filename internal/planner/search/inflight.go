package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

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
		slices.ContainsFunc(p.Groups, func(g fleet.Group) bool { return g.InFlight < vector.MaxCount })
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
	return exceeds || vector.Sum(given) > 0 && all > placing.OrUnbounded(p.Policy.MaxInFlight)
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
		p.Uncut = whole
		c := p.complete(given, p.round(given, placing.Fullest), placing.Fullest)
		trials := p.trials(&c.out)
		c = p.drop(p.withoutTries(given, c.given), c, -1, &trials)
		next, found := c.given, c.out
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
	p.Held = make([]int64, len(given))
	for i := range p.Held {
		p.Held[i] = max(whole[i]-given[i], 0)
	}
	for n, used := range planned.Used {
		out.Used[n] = out.Used[n] || used // it waits for the delayed pods
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

// openUnderCaps reports whether a step could continue.
func (p *Search) openUnderCaps(given []int64) bool {
	l := p.Open(nil, given)
	return slices.ContainsFunc(
		p.Groups,
		func(g fleet.Group) bool { return min(l.Room[g.Shape.Group], l.Spare) >= g.Hosts },
	)
}

// servedOn reports whether a claim has room on a ledger; nil has none.
func (p *Search) servedOn(l *placing.Ledger, c Claim) bool {
	if l == nil {
		return false
	}
	return p.placed(l, p.NewBatch(c.Purpose, c.Items, l.How))
}

func (p *Search) HeldOf(i int) int64 {
	if p.Held == nil {
		return 0
	}
	return p.Held[i]
}
