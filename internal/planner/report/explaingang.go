package report

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gangLike explains the first waiting gang, in the order of planning, that asks for the same bundles. If none waits, it
// adds one to the snapshot.
func (a asker) gangLike(s model.Snapshot, asked raydemand.Gang) model.Explanation {
	p, given, out := a.decide(&s)
	same := func(g *fleet.Gang) bool { return fleet.AsksAs(g.Gang, &asked) }
	at, prefix := slices.IndexFunc(p.Gangs, same), ""
	if at < 0 {
		prefix = "no gang in the snapshot is waiting for it; if one were: "
		asked.ID = ""
		s.Gangs = append(slices.Clone(s.Gangs), asked)
		p, given, out = a.decide(&s)
		at = slices.IndexFunc(p.Gangs, same)
	}
	e := p.explainGang(p.Gangs[at], given, &out)
	e.Message = prefix + e.Message
	return e
}
