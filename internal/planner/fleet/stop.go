package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// stopOutdated stops nodes whose launch configuration is not their group's any more, each with all hosts of its
// replica. KubeRay clusters have the check off. The head is never stopped.
func (r *Fleet) stopOutdated(checkDisabled bool) {
	if checkDisabled {
		return
	}
	for _, u := range r.units(nil) {
		at := slices.IndexFunc(u.nodes, func(n int) bool { return r.outdated(&r.Nodes[n]) != "" })
		if at < 0 || r.Groups[u.group].LimitsConflict() {
			continue
		}
		first := &r.Nodes[u.nodes[at]]
		r.stopUnit(&u, model.StopOutdated, func(n *Node) string {
			return cmp.Or(r.outdated(n), fmt.Sprintf("it leaves with host %s of its replica: %s", first.Pod, r.outdated(first)))
		})
	}
}

// outdated says what is wrong with a node's launch configuration, or nothing.
func (r *Fleet) outdated(n *Node) string {
	want := cmp.Or(r.Groups[n.GroupIndex].LaunchConfigHash, n.GroupLaunchConfigHash)
	if n.LaunchConfigHash == "" || want == "" || want == n.LaunchConfigHash {
		return ""
	}
	return fmt.Sprintf("its launch configuration %s is not the group's %s", n.LaunchConfigHash, want)
}

func (r *Fleet) stop(i int, reason, message string) {
	n := &r.Nodes[i]
	if n.Stop != "" {
		return
	}
	n.Stop, n.StopMessage = reason, message
	if n.GroupIndex >= 0 {
		r.Groups[n.GroupIndex].Stopping++
	}
}

// stopOverMaximum first brings each group to its own maximum, then all of them to the common bound.
func (r *Fleet) stopOverMaximum() {
	if !r.overMaximum() {
		return
	}
	units := r.units(nil)
	for i := range r.Groups {
		g := &r.Groups[i]
		over := g.Live - g.Stopping - g.MaxPods
		if over <= 0 || g.LimitsConflict() {
			continue
		}
		r.stopUnits(units, over, model.StopMaxGroup, fmt.Sprintf("group %s has %d of at most %d", g.Name, g.Live, g.MaxPods),
			func(u *unit) bool { return u.group == i })
	}
	over := -r.Bound
	for i := range r.Groups {
		over += r.Groups[i].Live - r.Groups[i].Stopping
	}
	if over <= 0 {
		return
	}
	message := fmt.Sprintf("all groups together have %d more than the %d allowed", over, r.Bound)
	// Groups at their minimum lose workers only when nothing else is left to give.
	over = r.stopUnits(units, over, model.StopMaxWorkers, message, func(u *unit) bool {
		g := &r.Groups[u.group]
		return !g.LimitsConflict() && g.Remaining()-r.podsOf(u) >= g.MinPods
	})
	r.stopUnits(
		units,
		over,
		model.StopMaxWorkers,
		message,
		func(u *unit) bool { return !r.Groups[u.group].LimitsConflict() },
	)
}

// overMaximum reports whether any limit is exceeded at all.
func (r *Fleet) overMaximum() bool {
	var all int64
	for i := range r.Groups {
		g := &r.Groups[i]
		if all += g.Live - g.Stopping; g.Live-g.Stopping > g.MaxPods {
			return true
		}
	}
	return all > r.Bound
}

// stopUnits stops eligible units, least disruptive first, until over pods are gone, and returns what is still over.
func (r *Fleet) stopUnits(units []unit, over int64, reason, message string, eligible func(*unit) bool) int64 {
	for i := range units {
		u := &units[i]
		if over <= 0 {
			break
		}
		if r.Nodes[u.nodes[0]].Stop != "" || !eligible(u) {
			continue
		}
		r.stopUnit(u, reason, func(*Node) string { return message })
		over -= int64(len(u.nodes))
	}
	return over
}

// stopUnit stops all nodes of a unit. Hosts that its replica has lost do not come back then.
func (r *Fleet) stopUnit(u *unit, reason string, message func(*Node) string) {
	for _, n := range u.nodes {
		r.stop(n, reason, message(&r.Nodes[n]))
	}
	g := &r.Groups[u.group]
	lost := r.podsOf(u) - int64(len(u.nodes)) - g.leavingOf[u.key]
	g.Missing = max(0, g.Missing-max(0, lost))
}

// podsOf counts the pods that a unit has when it is complete.
func (r *Fleet) podsOf(u *unit) int64 {
	return vector.RoundUp(int64(len(u.nodes)), r.Groups[u.group].Hosts)
}

// unit is what can only be stopped together: one node, or all hosts of a multi-host replica. Hosts that do not say
// which replica they belong to form one unit, because taking some would break up replicas at random.
type unit struct {
	group int
	key   string
	nodes []int
	// joined says that some node has joined Ray; busy that some node is not idle by Ray's own account.
	joined, busy bool
	idleSeconds  float64 // of the host that was busy last
	used         float64 // mean share of what the nodes have
}

// units returns the units that remain in the groups marked, or in all, those first that are stopped first: not yet
// joined, longest idle, least used (Ray 2.60's order).
func (r *Fleet) units(marked []bool) []unit {
	type identity struct {
		group int
		key   string
	}
	index := make(map[identity]int)
	var units []unit
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.GroupIndex < 0 || n.Stop != "" || marked != nil && !marked[n.GroupIndex] {
			continue
		}
		id := identity{n.GroupIndex, n.Pod}
		if r.Groups[n.GroupIndex].Hosts > 1 {
			id.key = n.Replica
		}
		at, known := index[id]
		if !known {
			at = len(units)
			index[id] = at
			units = append(units, unit{group: n.GroupIndex, key: id.key, idleSeconds: n.IdleSeconds})
		}
		r.join(&units[at], i)
	}
	slices.SortFunc(units, leastDisruptiveFirst)
	return units
}

func (r *Fleet) join(u *unit, i int) {
	n := &r.Nodes[i]
	u.nodes = append(u.nodes, i)
	u.joined = u.joined || n.State != model.Pending
	u.busy = u.busy || n.State == model.Running
	u.idleSeconds = min(u.idleSeconds, n.IdleSeconds)
	u.used += (r.usedShare(n) - u.used) / float64(len(u.nodes))
}

func leastDisruptiveFirst(a, b unit) int {
	return cmp.Or(
		vector.CompareBool(a.joined, b.joined),
		vector.CompareBool(a.busy, b.busy),
		cmp.Compare(b.idleSeconds, a.idleSeconds),
		cmp.Compare(a.used, b.used),
		cmp.Compare(a.group, b.group),
		cmp.Compare(a.key, b.key),
	)
}

// usedShare is the mean over the resources that the node has of the share in use.
func (r *Fleet) usedShare(n *Node) float64 {
	var sum float64
	var kinds int
	for i, total := range r.Named(n.Shape.Total) {
		if total > 0 {
			sum += 1 - float64(n.Free[i])/float64(total)
			kinds++
		}
	}
	if kinds == 0 {
		return 0
	}
	return sum / float64(kinds)
}
