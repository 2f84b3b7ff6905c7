package planner

import (
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// placeOption places equal gangs, all of them, by one of their options wherever they may lie: in one domain after the other where a gang
// wants to share a label. The one whose launches are best by the objective is taken; nothing is better than no launch, so the first
// that needs none ends the search.
func (p *Placer) placeOption(l *ledger, gangs []*fleet.Gang, o int) (best *ledger, ok bool) {
	g := gangs[0]
	option := g.Options[o]
	for _, d := range p.roomy(l, p.domains(l, g), option) {
		b := p.newBatch("gang", option.Items, l.how)
		for i := range b.left {
			b.left[i] = min(b.left[i]*int64(len(gangs)), vector.MaxCount)
		}
		b.turn, b.within = g.Number, d
		switch {
		case g.Strategy == raydemand.StrictSpread:
			b.apart, b.avoid = int64(len(gangs)), g.Number
		case g.Strategy == raydemand.StrictPack && g.Held:
			b.join = g.Number
		}
		trial := p.trial(l)
		p.place(trial, b)
		trial.runs = append(trial.runs, run{gangs, o, d})
		if b.served() && (best == nil || p.compareLaunches(option, trial.launched, best.launched) < 0) {
			best, trial = trial, best
		}
		p.release(trial)
		if best != nil && vector.Sum(best.launched) == vector.Sum(l.launched) {
			break
		}
	}
	return best, best != nil
}
