package planner

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
)

// withoutIdle returns the fleet as it is when its idle units have been stopped. used marks the nodes that the plan places demand on,
// given counts the pods that it launches, by group.
func (r *roster) withoutIdle(used []bool, given []int64) *roster {
	left := *r
	left.groups, left.nodes = slices.Clone(r.groups), slices.Clone(r.nodes)
	left.stopIdle(used, given)
	return &left
}

// stopIdle stops units that have been idle for strictly longer than their group's timeout by Ray's own account, that
// no demand was placed on, and that the minimum does not hold. A replica of which a host leaves already is lost to the
// minimum, and its other hosts follow: the operator deletes replicas only whole. Idle terminations never free room for
// launches in the same plan: Ray may refuse the drain.
func (r *roster) stopIdle(used []bool, given []int64) {
	for _, u := range r.units(r.overdue()) {
		g := &r.groups[u.group]
		spare := g.leavingOf[u.key] > 0 || g.standing()+given[u.group]-r.podsOf(&u) >= g.min
		if !spare || !r.mayLeave(&u, used) {
			continue
		}
		r.stopUnit(&u, model.StopIdle, func(n *node) string {
			idle, limit := phrase.Span(n.IdleSeconds), phrase.Span(*g.timeout)
			if idle == limit {
				return "idle for longer than " + limit
			}
			return fmt.Sprintf("idle for %s, longer than %s", idle, limit)
		})
	}
}

// overdue tells the groups in which some node has been idle for too long; in a steady cluster there are none.
func (r *roster) overdue() []bool {
	groups := make([]bool, len(r.groups))
	for i := range r.nodes {
		if n := &r.nodes[i]; n.State == model.Idle && n.group >= 0 {
			g := &r.groups[n.group]
			groups[n.group] = groups[n.group] || g.timeout != nil && n.IdleSeconds > *g.timeout
		}
	}
	return groups
}

func (r *roster) mayLeave(u *unit, used []bool) bool {
	g := &r.groups[u.group]
	if g.timeout == nil || u.idleSeconds <= *g.timeout || g.contradictory() {
		return false
	}
	for _, n := range u.nodes {
		if used[n] || r.nodes[n].State != model.Idle {
			return false
		}
	}
	return true
}
