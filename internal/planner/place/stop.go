package place

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"heliostat.dev/heliostat/internal/planner/model"
)

// stopOutdated stops nodes whose launch configuration differs from their group's, each with all hosts of its replica.
// The check is off for KubeRay clusters. The head is never stopped.
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
			return cmp.Or(
				r.outdated(n),
				fmt.Sprintf("it stops with host %s of its replica: %s", first.Pod, r.outdated(first)),
			)
		})
	}
}

// outdated describes how a node's launch configuration differs from its group's, or returns an empty string.
func (r *Fleet) outdated(n *Node) string {
	want := cmp.Or(r.Groups[n.GroupIndex].LaunchConfigHash, n.GroupLaunchConfigHash)
	if n.LaunchConfigHash == "" || want == "" || want == n.LaunchConfigHash {
		return ""
	}
	return fmt.Sprintf("its launch configuration %s differs from the group's %s", n.LaunchConfigHash, want)
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

// stopOverMaximum stops nodes until each group is at or below its own maximum, and then until all groups are within the
// common bound.
func (r *Fleet) stopOverMaximum() {
	units := sync.OnceValue(func() []unit { return r.units(nil) })
	for i := range r.Groups {
		g := &r.Groups[i]
		over := g.Live - g.Stopping - g.MaxPods
		if over <= 0 || g.LimitsConflict() {
			continue
		}
		message := fmt.Sprintf("group %s has %d, maximum %d", g.Name, g.Live, g.MaxPods)
		r.stopUnits(units(), over, model.StopMaxGroup, message, func(u *unit) bool { return u.group == i })
	}
	over := -r.Bound
	for i := range r.Groups {
		over += r.Groups[i].Live - r.Groups[i].Stopping
	}
	if over <= 0 {
		return
	}
	message := fmt.Sprintf("all groups together have %d more than the maximum of %d", over, r.Bound)
	// Groups at their minimum lose workers only if no other group can.
	over = r.stopUnits(units(), over, model.StopMaxWorkers, message, func(u *unit) bool {
		g := &r.Groups[u.group]
		return !g.LimitsConflict() && g.Remaining()-r.podsOf(u) >= g.MinPods
	})
	r.stopUnits(units(), over, model.StopMaxWorkers, message,
		func(u *unit) bool { return !r.Groups[u.group].LimitsConflict() })
}

// stopUnits stops eligible units, least disruptive first, until the number of pods to stop is reached, and returns the
// rest.
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

// stopUnit stops all nodes of a unit. Lost hosts of its replica are then not replaced.
func (r *Fleet) stopUnit(u *unit, reason string, message func(*Node) string) {
	for _, n := range u.nodes {
		r.stop(n, reason, message(&r.Nodes[n]))
	}
	g := &r.Groups[u.group]
	lost := r.podsOf(u) - int64(len(u.nodes)) - g.leavingOf[u.key]
	g.Missing = max(0, g.Missing-max(0, lost))
}

// podsOf counts the pods of the complete unit.
func (r *Fleet) podsOf(u *unit) int64 {
	return RoundUp(int64(len(u.nodes)), r.Groups[u.group].Hosts)
}

// unit is the smallest set of nodes that can be stopped: one node, or all hosts of a multi-host replica. Hosts of an
// unknown replica form one unit, because stopping some of them would break up replicas at random.
type unit struct {
	group int
	key   string
	nodes []int
	// joined: some node has joined Ray. busy: Ray reports that some node is not idle.
	joined, busy bool
	idleSeconds  float64 // of the host that was busy last
	used         float64 // mean share of the nodes' resources
}

// units returns the remaining units of the marked groups, or of all, in the order in which they are stopped: not joined
// yet, not busy, idle longest, least used (the order of Ray 2.60).
func (r *Fleet) units(marked []bool) []unit {
	type replica struct {
		group int
		name  string
	}
	index := map[replica]int{} // of multi-host groups
	units := make([]unit, 0, len(r.Nodes))
	numbers := make([]int, len(r.Nodes))
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.GroupIndex < 0 || n.Stop != "" || marked != nil && !marked[n.GroupIndex] {
			continue
		}
		at, key, known := len(units), n.Pod, false
		if r.Groups[n.GroupIndex].Hosts > 1 {
			key = n.Replica
			if at, known = index[replica{n.GroupIndex, key}]; !known {
				at = len(units)
				index[replica{n.GroupIndex, key}] = at
			}
		}
		if !known {
			own := numbers[i : i : i+1] // one node has its place here; more hosts move
			units = append(units, unit{group: n.GroupIndex, key: key, nodes: own, idleSeconds: n.IdleSeconds})
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
		CompareBool(a.joined, b.joined),
		CompareBool(a.busy, b.busy),
		cmp.Compare(b.idleSeconds, a.idleSeconds),
		cmp.Compare(a.used, b.used),
		cmp.Compare(a.group, b.group),
		cmp.Compare(a.key, b.key),
	)
}

// usedShare returns the mean share in use of the node's resources.
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
