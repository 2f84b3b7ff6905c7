package place

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
)

// stopIdle stops units that Ray reports idle for strictly longer than their group's timeout, that nothing keeps, and
// that the minimum does not need. If a host of a replica is already leaving, the replica does not count toward
// the minimum, and its other hosts stop too: the operator deletes only whole replicas. Stopping idle nodes never makes
// room for launches in the same plan, because Ray may refuse the drain.
func (r *Fleet) stopIdle(stays []Stay, given []int64) {
	for _, u := range r.units(r.Overdue()) {
		g := &r.Groups[u.group]
		spare := g.leavingOf[u.key] > 0 || g.Remaining()+given[u.group]-r.podsOf(&u) >= g.MinPods
		if !spare || !r.mayLeave(&u, stays) {
			continue
		}
		r.stopUnit(&u, model.StopIdle, func(n *Node) string {
			idle, limit := model.Span(n.IdleSeconds), model.Span(*g.Timeout)
			if idle == limit {
				return "idle for longer than " + limit
			}
			return fmt.Sprintf("idle for %s, longer than %s", idle, limit)
		})
	}
}

// Overdue marks the groups with a node that has been idle for too long. In a steady cluster there are none.
func (r *Fleet) Overdue() []bool {
	groups := make([]bool, len(r.Groups))
	for i := range r.Nodes {
		if n := &r.Nodes[i]; r.overdue(n) {
			groups[n.GroupIndex] = true
		}
	}
	return groups
}

// overdue reports whether a worker has been idle for longer than its group allows, whatever the group's minimum keeps.
func (r *Fleet) overdue(n *Node) bool {
	if n.State != model.Idle || n.GroupIndex < 0 {
		return false
	}
	g := &r.Groups[n.GroupIndex]
	return g.Timeout != nil && n.IdleSeconds > *g.Timeout
}

func (r *Fleet) mayLeave(u *unit, stays []Stay) bool {
	g := &r.Groups[u.group]
	if g.Timeout == nil || u.idleSeconds <= *g.Timeout || g.LimitsConflict() {
		return false
	}
	for _, n := range u.nodes {
		if stays[n] != 0 || r.Nodes[n].State != model.Idle {
			return false
		}
	}
	return true
}
