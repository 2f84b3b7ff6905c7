package search

import (
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Possible reports whether some group, or some node that stays, could ever serve one bundle. A maximum of 0 is a limit
// like any other. Ray may cancel demand that is impossible, so demand that only a limit prevents, or that depends
// on something unknown, is never called impossible. A group whose pods no node will ever hold serves nothing.
func (p *Search) Possible(it *vector.Item) bool {
	for i := range p.Groups {
		if len(p.Wants(i, it, nil)) > 0 {
			return true
		}
	}
	return p.Certain(it)
}

// Certain reports whether some group, or some node that stays, could serve one bundle by what is known.
func (p *Search) Certain(it *vector.Item) bool {
	for i := range p.Groups {
		if it.Suits(p.Groups[i].Shape) && !p.Groups[i].Hopeless() {
			return true
		}
	}
	for i := range p.Base {
		if it.Suits(p.Base[i].Shape) {
			return true
		}
	}
	return false
}

// Wants returns what a new pod of a group must turn out to announce to serve an item, or an item of a gang; nil if no
// announcement makes a difference.
func (p *Search) Wants(i int, it *vector.Item, gang *fleet.Gang) []fleet.Awaited {
	g := &p.Groups[i]
	awaited, ok := p.Awaits(g, it)
	if g.Hopeless() || !ok && !it.Suits(g.Shape) {
		return nil
	}
	if gang == nil || gang.TopologyLabel == "" || gang.Held {
		return awaited
	}
	if domain := g.OpenLabel(gang.TopologyLabel); domain != nil {
		return append(awaited, fleet.Awaited{Announced: domain})
	}
	return awaited
}
