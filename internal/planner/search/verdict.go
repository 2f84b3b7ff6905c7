package search

import (
	"cmp"

	"heliostat.dev/heliostat/internal/planner/cost"
)

// verdict rates a plan: what it leaves unserved, then what it costs by tier, then the number of its pods, then the
// number of idle nodes that it keeps from stopping. Smaller is better, compared in this order.
type verdict struct {
	claims, gangs int
	unserved      float64
	cost.LaunchCost
	// kept counts the nodes that stay beyond their idle timeout because something is placed on them.
	kept int
}

func (p *Search) verdict(given []int64, out *Outcome) verdict {
	v := verdict{claims: len(out.Claims), gangs: len(out.Gangs), kept: out.kept, LaunchCost: p.Costs.LaunchCost(given)}
	for i, n := range out.Unserved {
		v.unserved += float64(n) * p.Needed(p.Requests[i])
	}
	return v
}

// compareService compares what is left unserved.
func (v *verdict) compareService(other *verdict) int {
	return cmp.Or(
		cmp.Compare(v.claims, other.claims),
		cmp.Compare(v.gangs, other.gangs),
		cost.CompareNearly(v.unserved, other.unserved),
	)
}

func (v *verdict) compare(other *verdict) int {
	return cmp.Or(v.compareService(other), v.LaunchCost.Compare(&other.LaunchCost), cmp.Compare(v.kept, other.kept))
}
