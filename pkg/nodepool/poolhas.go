package nodepool

import (
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// count adds what a node has of what a pod takes.
func (c *poolCount) count(p *podfit.PodShape, place *podfit.Node) {
	if c.perHas == nil {
		c.has, c.perHas = podfit.Quantities{}, podfit.Quantities{}
	}
	each := func(name string) {
		have := place.Allocatable[name]
		c.perHas[name] = max(c.perHas[name], have)
		if !place.Declared {
			c.has[name] = c.has[name].Plus(place.Usable(name).Times(1 + int64(place.Alike)))
		}
	}
	for name, want := range p.Requests {
		if want > 0 && !podfit.CheckedElsewhere[name] {
			each(name)
		}
	}
	each("pods")
}

// allHave is what the nodes that are there and those that may be added have together, of the resources that something bounds. A node that comes up
// has as much as any.
func (c *poolCount) allHave(room *PoolRoom) podfit.Quantities {
	var slow int64
	for _, node := range c.coming {
		if kind := instanceType(node); kind != "" && c.byType[kind] > 0 {
			slow += 1 + int64(node.Alike)
		}
	}
	var all podfit.Quantities
	for name, most := range c.perHas {
		sum := c.has[name].Plus(most.Times(slow))
		limit, limited := room.Limits[name]
		switch {
		case most <= 0: // no node tells
			continue
		case room.MayAddNodes != nil && (*room.MayAddNodes == 0 || !room.Mixed):
			sum = sum.Plus(most.Times(*room.MayAddNodes))
		case limited:
			sum = sum.Plus(max(limit-room.Used[name], 0))
		default:
			continue
		}
		if all == nil {
			all = podfit.Quantities{}
		}
		all[name] = sum
	}
	return all
}
