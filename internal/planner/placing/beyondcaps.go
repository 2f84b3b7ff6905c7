package placing

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// cappedFor reports whether the caps prevent launches of a group that an option could use.
func (l *Ledger) cappedFor(p *Placer, gang *fleet.Gang) bool {
	return slices.ContainsFunc(p.Groups, func(g fleet.Group) bool {
		i := g.Shape.Group
		return (l.cut[i] > 0 || l.cutAll > 0 && l.Room[i] > 0) && gang.Suits(g.Shape)
	})
}

// PlaceBeyondCaps places the first of some equal gangs that found no room under the caps, if it may exceed them. If it
// waits only for the caps, the launches that it needs are reserved.
func (p *Placer) PlaceBeyondCaps(l *Ledger, gangs []*fleet.Gang) (*Ledger, int) {
	if len(l.cut) == 0 || len(gangs) == 0 || !l.cappedFor(p, gangs[0]) {
		return l, 0
	}
	trial, served := p.PlaceIdentical(p.Uncapped(l), gangs[:1])
	switch {
	case served == 0:
	case p.try(l, trial.Launched):
		l.reserve(trial.Launched)
	case l.alone(trial.Launched):
		trial.restoreCaps()
		p.Release(l)
		return trial, served
	default:
		l.reserve(trial.Launched)
	}
	p.Release(trial)
	return l, 0
}

// try reports whether launches need more pods than known nodes hold and may be tried, and then launches what may be of
// the groups that are tried: once such a pod has joined, the gang is launched whole.
func (p *Placer) try(l *Ledger, launched []int64) bool {
	if l.allowsTries(p, launched) {
		return false
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		if !g.Trying() && len(l.ceilings.UnprovenPools(i)) == 0 {
			continue
		}
		n := min(launched[i]-l.Launched[i], l.Room[i], l.Spare)
		if n -= n % g.Hosts; n > 0 {
			l.Classes = append(l.Classes, l.Launch(g, n)...)
		}
	}
	return true
}

// allowsTries reports whether launches try no more than they may, whatever the other caps are.
func (l *Ledger) allowsTries(p *Placer, launched []int64) bool {
	var on *landing.Taken
	if l.tries && l.on != nil {
		on = &landing.Taken{}
		on.CopyFrom(l.on)
	}
	for i := range p.Groups {
		need := launched[i] - l.Launched[i]
		if p.Groups[i].Trying() && need > l.Room[i] || l.tries && l.ceilings.Occupy(on, i, need) < need {
			return false
		}
	}
	return true
}

// alone reports whether nothing else counts toward the caps that launches would exceed.
func (l *Ledger) alone(launched []int64) bool {
	var all, asked int64
	for i := range launched {
		own := l.asked[i] + l.Launched[i]
		need := launched[i] - l.Launched[i]
		all, asked = all+need, asked+own
		if need > l.Room[i] && own > 0 {
			return false
		}
	}
	return all <= l.Spare || asked == 0
}
