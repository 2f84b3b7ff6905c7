package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/placing"
)

// keepUntilReplaced keeps idle workers that serve requests over REST now, where the plan counts on others in their stead that have not joined Ray:
// what grows elsewhere may make another packing the better one, and until that is there nothing shall be taken from anybody.
func (p *Search) keepUntilReplaced(out *Outcome) {
	if !p.mayLoseIdle(out) {
		return
	}
	l, left := p.assign(p.totals)
	if len(left) == 0 && !p.sharesComing(out) {
		return
	}
	for i := range l.Classes {
		for _, n := range l.Classes[i].Members {
			if l.Classes[i].Touched && !out.Used[n] {
				if out.HeldOver == nil {
					out.HeldOver = make([]bool, len(p.Nodes))
				}
				out.Used[n], out.HeldOver[n] = true, true
			}
		}
	}
}

// mayLoseIdle reports whether requests over REST stand while some worker that the plan does not use has been idle for too long.
func (p *Search) mayLoseIdle(out *Outcome) bool {
	if len(p.RestRequests) == 0 {
		return false
	}
	overdue := p.Overdue()
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.GroupIndex >= 0 && n.Stop == "" && overdue[n.GroupIndex] && n.State == model.Idle && !out.Used[i] {
			return true
		}
	}
	return false
}

// sharesComing reports whether the plan places some of the requests on pods that have not joined Ray.
func (p *Search) sharesComing(out *Outcome) bool {
	items := p.Claims[p.RestClaim].Items
	return slices.ContainsFunc(out.Log, func(e placing.Entry) bool { return e.Purpose == OverREST }) ||
		slices.ContainsFunc(out.Waits, func(w placing.Wait) bool { return slices.Contains(items, w.Item) })
}

// IsHeldOver reports whether a node stays only until what replaces it has joined Ray.
func (o *Outcome) IsHeldOver(node int) bool { return o.HeldOver != nil && o.HeldOver[node] }
