package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// conservativeStep is the least that upscalingMode Conservative lets a group have on its way at once
// (Ray's first autoscaler: max(5, running); KubeRay's tests expect it still).
const conservativeStep = 5

// shutFor finds why a group takes no launches, whatever its limits.
func (g *group) shutFor(mode string) {
	switch {
	case g.CoolingSeconds > 0:
		g.shut = model.Reason{Code: model.CodeCoolingDown, Message: strings.TrimSuffix("cooling down for "+phrase.Span(g.CoolingSeconds)+": "+g.Closed, ": ")}
	case g.Closed != "":
		g.shut = model.Reason{Code: model.CodeClosed, Message: "closed: " + g.Closed}
	case g.contradictory():
		g.shut = model.Reason{Code: model.CodeInvalidLimits, Message: fmt.Sprintf("minReplicas %d is above maxReplicas %d, with which the operator stops the whole cluster; "+
			"the group is left as it is until that is mended", g.Min, g.Max)}
	}
	g.inFlight = vector.MaxCount
	if mode == "Conservative" {
		g.inFlight = max(conservativeStep, g.joined)
	}
}

// contradictory reports whether the group's limits exclude each other. The operator stops the whole cluster for it, so the group is left
// as it is, whatever else there is to say about it: nothing is launched or stopped.
func (g *group) contradictory() bool { return g.min > g.max }

// standing counts the pods that stay: joined, on their way, or asked for.
func (g *group) standing() int64 { return g.live + g.missing - g.stopping }

// room returns how many pods may be launched beside those given, in whole replicas, however many may be on their way at
// once. Nodes that are being stopped still fill the group: they exist until they have been drained.
func (g *group) room(given int64) int64 {
	if g.shut.Code != "" {
		return 0
	}
	n := max(0, g.max-g.current-given)
	return n - n%g.hosts
}

// spare returns how many pods the bound on all workers still allows.
func (r *roster) spare(given []int64) int64 {
	spare := r.bound
	for i := range r.groups {
		spare -= r.groups[i].current + given[i]
	}
	return max(spare, 0)
}

// stopOutdated stops nodes whose launch configuration is not their group's any more, each with all hosts of its replica. KubeRay
// clusters have the check off. The head is never stopped.
func (r *roster) stopOutdated(checkDisabled bool) {
	if checkDisabled {
		return
	}
	for _, u := range r.units(nil) {
		at := slices.IndexFunc(u.nodes, func(n int) bool { return r.outdated(&r.nodes[n]) != "" })
		if at < 0 || r.groups[u.group].contradictory() {
			continue
		}
		first := &r.nodes[u.nodes[at]]
		r.stopUnit(&u, model.StopOutdated, func(n *node) string {
			return cmp.Or(r.outdated(n), fmt.Sprintf("it leaves with host %s of its replica: %s", first.Pod, r.outdated(first)))
		})
	}
}

// outdated says what is wrong with a node's launch configuration, or nothing.
func (r *roster) outdated(n *node) string {
	want := cmp.Or(r.groups[n.group].LaunchConfigHash, n.GroupLaunchConfigHash)
	if n.LaunchConfigHash == "" || want == "" || want == n.LaunchConfigHash {
		return ""
	}
	return fmt.Sprintf("its launch configuration %s is not the group's %s", n.LaunchConfigHash, want)
}

func (r *roster) stop(i int, reason, message string) {
	n := &r.nodes[i]
	if n.stop != "" {
		return
	}
	n.stop, n.stopMessage = reason, message
	if n.group >= 0 {
		r.groups[n.group].stopping++
	}
}

// stopOverMaximum first brings each group to its own maximum, then all of them to the common bound.
func (r *roster) stopOverMaximum() {
	if !r.overMaximum() {
		return
	}
	units := r.units(nil)
	for i := range r.groups {
		g := &r.groups[i]
		over := g.live - g.stopping - g.max
		if over <= 0 || g.contradictory() {
			continue
		}
		r.stopUnits(units, over, model.StopMaxGroup, fmt.Sprintf("group %s has %d of at most %d", g.Name, g.live, g.max),
			func(u *unit) bool { return u.group == i })
	}
	over := -r.bound
	for i := range r.groups {
		over += r.groups[i].live - r.groups[i].stopping
	}
	if over <= 0 {
		return
	}
	message := fmt.Sprintf("all groups together have %d more than the %d allowed", over, r.bound)
	// Groups at their minimum lose workers only when nothing else is left to give.
	over = r.stopUnits(units, over, model.StopMaxWorkers, message, func(u *unit) bool {
		g := &r.groups[u.group]
		return !g.contradictory() && g.standing()-r.podsOf(u) >= g.min
	})
	r.stopUnits(units, over, model.StopMaxWorkers, message, func(u *unit) bool { return !r.groups[u.group].contradictory() })
}

// overMaximum reports whether any limit is exceeded at all.
func (r *roster) overMaximum() bool {
	var all int64
	for i := range r.groups {
		g := &r.groups[i]
		if all += g.live - g.stopping; g.live-g.stopping > g.max {
			return true
		}
	}
	return all > r.bound
}

// stopUnits stops eligible units, least disruptive first, until over pods are gone, and returns what is still over.
func (r *roster) stopUnits(units []unit, over int64, reason, message string, eligible func(*unit) bool) int64 {
	for i := range units {
		u := &units[i]
		if over <= 0 {
			break
		}
		if r.nodes[u.nodes[0]].stop != "" || !eligible(u) {
			continue
		}
		r.stopUnit(u, reason, func(*node) string { return message })
		over -= int64(len(u.nodes))
	}
	return over
}

// stopUnit stops all nodes of a unit. Hosts that its replica has lost do not come back then.
func (r *roster) stopUnit(u *unit, reason string, message func(*node) string) {
	for _, n := range u.nodes {
		r.stop(n, reason, message(&r.nodes[n]))
	}
	g := &r.groups[u.group]
	lost := r.podsOf(u) - int64(len(u.nodes)) - g.leavingOf[u.key]
	g.missing = max(0, g.missing-max(0, lost))
}

// podsOf counts the pods that a unit has when it is complete.
func (r *roster) podsOf(u *unit) int64 {
	return vector.RoundUp(int64(len(u.nodes)), r.groups[u.group].hosts)
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

// units returns the units that remain in the groups marked, or in all, those first that are stopped first: not yet joined, longest idle, least used
// (Ray 2.60's order).
func (r *roster) units(marked []bool) []unit {
	type identity struct {
		group int
		key   string
	}
	index := make(map[identity]int)
	var units []unit
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.group < 0 || n.stop != "" || marked != nil && !marked[n.group] {
			continue
		}
		id := identity{n.group, n.Pod}
		if r.groups[n.group].hosts > 1 {
			id.key = n.Replica
		}
		at, known := index[id]
		if !known {
			at = len(units)
			index[id] = at
			units = append(units, unit{group: n.group, key: id.key, idleSeconds: n.IdleSeconds})
		}
		r.join(&units[at], i)
	}
	slices.SortFunc(units, gentlestFirst)
	return units
}

func (r *roster) join(u *unit, i int) {
	n := &r.nodes[i]
	u.nodes = append(u.nodes, i)
	u.joined = u.joined || n.State != model.Pending
	u.busy = u.busy || n.State == model.Running
	u.idleSeconds = min(u.idleSeconds, n.IdleSeconds)
	u.used += (r.usedShare(n) - u.used) / float64(len(u.nodes))
}

func gentlestFirst(a, b unit) int {
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
func (r *roster) usedShare(n *node) float64 {
	var sum float64
	var kinds int
	for i, total := range r.Named(n.shape.Total) {
		if total > 0 {
			sum += 1 - float64(n.free[i])/float64(total)
			kinds++
		}
	}
	if kinds == 0 {
		return 0
	}
	return sum / float64(kinds)
}
