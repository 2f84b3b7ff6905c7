package place

import (
	"cmp"
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
)

// stopIdle stops units that Ray reports idle for strictly longer than their group's timeout, that nothing keeps, and
// that the minimum does not need. If a host of a replica is already leaving, the replica does not count toward
// the minimum, and its other hosts stop too: the operator deletes only whole replicas. Stopping idle nodes never makes
// room for launches in the same plan, because Ray may refuse the drain.
func (r *Fleet) stopIdle(stays []Stay, given []int64) {
	leaves := func(n int) bool { return stays[n] == 0 && r.phaseOf(&r.Nodes[n]) == Overdue }
	for _, u := range r.units(r.Overdue(), leaves) {
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

// machines are the Kubernetes nodes of the own pods, by name: how many pods are on each, and how many of them stay
// whatever is stopped. A node autoscaler can remove an empty machine, and none with one pod left.
type machines map[string]*struct{ pods, stay int }

// machinesOf counts the pods that are on known machines. leaves reports whether a node may be stopped.
func (r *Fleet) machinesOf(leaves func(n int) bool) machines {
	all := machines{}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.KubeNode == "" || n.Stop != "" {
			continue
		}
		at := all[n.KubeNode]
		if at == nil {
			at = &struct{ pods, stay int }{}
			all[n.KubeNode] = at
		}
		at.pods++
		if !leaves(i) {
			at.stay++
		}
	}
	return all
}

// emptying says what stopping a unit does to its machines.
type emptying struct {
	// empties: no pod has to stay on the machines of any host, so they can become empty.
	empties bool
	// pods is how many pods must go until they are. first names the first machine, so that its pods go together.
	pods  int
	first string
}

func (r *Fleet) emptying(u *unit, all machines) emptying {
	var e emptying
	seen := map[string]bool{}
	for _, n := range u.nodes {
		name := r.Nodes[n].KubeNode
		at := all[name]
		if at == nil || at.stay > 0 {
			return emptying{}
		}
		if !seen[name] {
			seen[name] = true
			e.pods += at.pods
		}
	}
	e.empties, e.first = true, r.Nodes[u.nodes[0]].KubeNode
	return e
}

// compare orders units whose machines can become empty first, those of small machines before large ones, and keeps the
// pods of a machine together.
func (e emptying) compare(other emptying) int {
	return cmp.Or(
		CompareBool(!e.empties, !other.empties),
		cmp.Compare(e.pods, other.pods),
		cmp.Compare(e.first, other.first),
	)
}
