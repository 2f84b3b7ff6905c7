package planner

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/placing"
)

// keepUntilReplaced keeps idle workers that serve requests over REST now, where the plan counts on others in their stead that have not joined Ray:
// what grows elsewhere may make another packing the better one, and until that is there nothing shall be taken from anybody.
func (p *planning) keepUntilReplaced(out *outcome) {
	if !p.mayLoseIdle(out) {
		return
	}
	l, left := p.seat(p.totals)
	if len(left) == 0 && !p.sharesComing(out) {
		return
	}
	for i := range l.Classes {
		for _, n := range l.Classes[i].Members {
			if l.Classes[i].Touched && !out.used[n] {
				if out.heldOver == nil {
					out.heldOver = make([]bool, len(p.Nodes))
				}
				out.used[n], out.heldOver[n] = true, true
			}
		}
	}
}

// mayLoseIdle reports whether requests over REST stand while some worker that the plan does not use has been idle for too long.
func (p *planning) mayLoseIdle(out *outcome) bool {
	if len(p.shares) == 0 {
		return false
	}
	overdue := p.Overdue()
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.GroupIndex >= 0 && n.Stop == "" && overdue[n.GroupIndex] && n.State == model.Idle && !out.used[i] {
			return true
		}
	}
	return false
}

// sharesComing reports whether the plan places some of the requests on pods that have not joined Ray.
func (p *planning) sharesComing(out *outcome) bool {
	items := p.claims[p.shareClaim].items
	return slices.ContainsFunc(out.log, func(e placing.Entry) bool { return e.Purpose == overREST }) ||
		slices.ContainsFunc(out.waits, func(w placing.Wait) bool { return slices.Contains(items, w.Item) })
}

// isHeldOver reports whether a node stays only until what replaces it has joined Ray.
func (o *outcome) isHeldOver(node int) bool { return o.heldOver != nil && o.heldOver[node] }
