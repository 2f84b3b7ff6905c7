package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// bound is how many more pods a group may have beside the launches of the plan, 0 or a replica or more, and the limit
// that says so.
type bound struct {
	model.Reason
	room int64
}

// limit returns the limit that prevents one more replica of a group; no reason if none does.
func (d *decision) limit(i int) model.Reason {
	if b := d.boundOf(i); b.room == 0 {
		return b.Reason
	}
	return model.Reason{}
}

// boundOf returns the tightest limit of a group. Many shapes of demand ask for the same.
func (d *decision) boundOf(i int) bound {
	b, known := d.bounds[i]
	if !known {
		b = d.tightest(i)
		if b.room -= b.room % d.Groups[i].Hosts; b.room > 0 {
			b.Reason = after(fmt.Sprintf("group %s can add only %s: ", d.Groups[i].Name, model.Pods(b.room)), b.Reason)
		}
		d.bounds[i] = b
	}
	return b
}

func (d *decision) tightest(i int) bound {
	g, quota, spare := &d.Groups[i], d.QuotaRoom(i, d.given), d.Spare(d.given)
	var pods int64
	all := make([]int, len(d.Groups))
	for k := range d.Groups {
		pods, all[k] = pods+d.Groups[k].Current, k
	}
	has, have := d.having("has", g.Current, i), d.having("have", pods, all...)
	room := g.MaxPods - g.Current - d.given[i]
	switch {
	case g.Blocked != "":
		return bound{blocked(g), 0}
	case room < g.Hosts:
		return bound{atMax.with(g.Name, g.MaxPods, has), 0}
	case spare < g.Hosts && spare > 0:
		return bound{overBound.with(d.Bound, have, g.Name, model.Pods(g.Hosts)), 0}
	case spare < g.Hosts:
		return bound{atBound.with(d.Bound), 0}
	case quota < g.Hosts:
		return bound{atQuota.with(g.Name, d.quotaOf(i)), 0}
	}
	pool := d.PoolRoom(i, d.given)
	switch {
	case pool < g.Hosts:
		return bound{d.poolLimit(i, has), 0}
	case d.Held == nil: // no cap delays a launch
	case said(d.inFlightCap(i)):
		return bound{d.inFlightCap(i), 0}
	case d.HeldOf(i) > 0:
		return bound{behind.with(g.Name, model.Pods(g.Pending()+d.given[i]), d.capNames(g)), 0}
	}
	switch most := min(room, spare, quota, pool); {
	case room == most:
		return bound{maxIs.with(g.MaxPods, has), most}
	case spare == most:
		return bound{boundIs.with(d.Bound, have), most}
	case quota == most:
		return bound{quotaIs.with(d.quotaOf(i)), most}
	case d.PoolRoomUnpromised(i, d.given) > pool:
		return bound{promisedMore.with(d.promised(i)), most}
	}
	return bound{poolsHold.with(d.SharedNodes.Most[i], d.beside(i), has, d.rivals(i)), pool}
}

// having says how many pods groups have and launch now.
func (d *decision) having(verb string, pods int64, groups ...int) string {
	var launching int64
	for _, i := range groups {
		launching += d.given[i]
	}
	text := fmt.Sprintf("%s %d", verb, pods)
	if launching > 0 {
		text += fmt.Sprintf(", launching %d", launching)
	}
	return text
}

// blocked explains why a group takes no launches, regardless of its limits.
func blocked(g *place.Group) model.Reason {
	switch {
	case g.Blocked == model.CodeCoolingDown:
		return cooling.with(strings.TrimSuffix(model.Span(g.CoolingSeconds)+": "+g.Closed, ": "))
	case g.Blocked == model.CodeInvalidLimits:
		return conflict.with(g.Min, g.Max)
	case g.Blocked == model.CodeScaleGate:
		return gated.with(g.Name, joined(g.ScaleGates))
	case g.Excluded() && (g.Closed == "" || g.CoolingSeconds > 0):
		return excluded.with(g.NodeFit.Why)
	}
	return closed.with(g.Closed)
}

// quotaOf describes the quota that leaves the least room for pods of a group.
func (d *decision) quotaOf(i int) string {
	quota, left, takes, _ := d.Quotas.Tightest(i, d.given)
	unit := unitOf(quota.Resource)
	needs, all := model.Pair(unit, takes, quota.Amount)
	free, _ := model.Pair(unit, max(left, 0), quota.Amount)
	text := fmt.Sprintf("%s has %s %s, %s left; one pod takes %s", quota.Name, all, quota.Resource, free, needs)
	if quota.Why != "" {
		text += " (" + quota.Why + ")"
	}
	return text
}

// poolLimit explains that a group's pools have no room for another replica.
func (d *decision) poolLimit(i int, has string) model.Reason {
	g, where := &d.Groups[i], "the nodes"
	if len(d.SharedNodes.UnprovenPools(i)) > 0 {
		return d.triedInPool(i)
	}
	if g.Pod != nil && g.Pod.Node != "" {
		where = "node " + g.Pod.Node + ", which spec.nodeName names,"
	} else if len(g.Pools) > 0 {
		names := make([]string, len(g.Pools))
		for k, pool := range g.Pools {
			names[k] = pool.Name
		}
		where = poolsNamed(names)
	}
	if d.PoolRoomUnpromised(i, d.given) >= g.Hosts {
		return promisedTo.with(g.Name, where, d.promised(i))
	}
	cause := d.shortage(i)
	if most := d.SharedNodes.Most[i]; most > 0 || cause == "" {
		cause = model.Join(fmt.Sprintf("at most %d %s (%s)", most, d.beside(i), has), cause)
	}
	return poolFull.with(where, g.Name, cause, d.rivals(i))
}

func poolsNamed(names []string) string {
	names = slices.Clone(names)
	for k := range names {
		names[k] = cmp.Or(names[k], "of nodes without a name")
	}
	return model.OneOrMany(int64(len(names)), "pool ", "pools ") + joined(names)
}

// triedInPool says why only one replica of a group is launched beyond what fits on known nodes.
func (d *decision) triedInPool(i int) model.Reason {
	g := &d.Groups[i]
	return triedInPool.with(g.Name, poolsNamed(d.SharedNodes.UnprovenPools(i)), model.Pods(g.Hosts))
}

// triedOnNode says why only one replica of a group is launched until one has joined.
func triedOnNode(g *place.Group) model.Reason {
	return tried.with(g.Name, g.NodeFit.Why, model.Pods(g.Hosts))
}

// triedReason says why a group is tried with one replica at a time; no reason if it is not.
func (d *decision) triedReason(i int) model.Reason {
	switch g := &d.Groups[i]; {
	case g.Trying():
		return triedOnNode(g)
	case len(d.SharedNodes.UnprovenPools(i)) > 0:
		return d.triedInPool(i)
	}
	return model.Reason{}
}

// promised names the pods of other RayClusters that are on their way to nodes of a group.
func (d *decision) promised(i int) string {
	var names []string
	for _, p := range d.PromisedBeside(i) {
		names = append(names, fmt.Sprintf("%s of RayCluster %s", model.Pods(p.Pods), p.RayCluster))
	}
	return model.List(names)
}

// beside says which other pods the most pods of a group does not count.
func (d *decision) beside(i int) string {
	if d.Groups[i].Pod != nil {
		return "with what other pods leave free"
	}
	return "if no other pods are there"
}

// rivals names the pods of other groups that take room on the nodes of a group, if the group's own pods do not fill
// them.
func (d *decision) rivals(i int) string {
	var list []string
	for _, j := range d.SharedNodes.Rivals(i) {
		if pods := d.Groups[j].Current + d.given[j]; pods > 0 {
			list = append(list, fmt.Sprintf("%s of group %s", model.Pods(pods), d.Groups[j].Name))
		}
	}
	if len(list) == 0 || d.Groups[i].Current+d.given[i]+d.Groups[i].Hosts > d.SharedNodes.Most[i] {
		return ""
	}
	return "; " + model.List(list) + " can use the same nodes"
}

// shortage says what keeps more pods of a group from the nodes. If nodes are unknown, only the number of pods on a pool
// is known.
func (d *decision) shortage(i int) string {
	g := &d.Groups[i]
	if g.Pod == nil {
		return ""
	}
	if d.full == nil {
		d.full = d.SharedNodes.AllOccupied(d.given)
	}
	short := d.SharedNodes.Shortage(d.full, i)
	unit := unitOf(short.Resource)
	taken, total := model.Pair(unit, short.Total-short.Left, short.Total)
	need, _ := model.Pair(unit, short.Need, short.Need)
	are := fmt.Sprintf("%s of %s %s are taken", taken, total, devices(short.Resource))
	switch {
	case g.Pod.Domain != "":
		return fmt.Sprintf("no value of node label %s has room for the %d hosts of a replica", g.Pod.Domain, g.Hosts)
	case short.Rule != "":
		return short.Rule + " keeps its pods off all nodes that have room for them"
	case short.Cards:
		return "no card has enough left for one of its pods"
	case short.Resource != "" && short.Left < short.Need:
		return are
	case short.Resource != "":
		return fmt.Sprintf("%s, and no node has the %s left that one of its pods needs", are, need)
	case d.SharedNodes.Most[i] == 0 && g.Trying():
		return g.NodeFit.Why + ", and its pools may add no node"
	case d.SharedNodes.Most[i] == 0:
		return "other pods leave no room for them, and its pools may add no node"
	case g.NumOfHosts > 1:
		return fmt.Sprintf("what is left has room for fewer than the %d hosts of a replica", g.NumOfHosts)
	}
	return ""
}

// unitOf returns memory for a resource of Kubernetes, of a ResourceQuota or of Koordinator that is in bytes, and the
// resource for any other.
func unitOf(resource string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(resource, "limits."), "requests.")
	if name == "memory" || name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-") ||
		name == gpuinfo.KoordinatorMemory {
		return "memory"
	}
	return resource
}

// devices returns the name of a resource, or in words what Dynamic Resource Allocation supplies under it.
func devices(resource string) string {
	if template, is := sharing.TemplateOf(resource); is {
		return "devices for claims of ResourceClaimTemplate " + template
	}
	if class, is := strings.CutPrefix(resource, gpuinfo.ClassPrefix); is {
		return "devices of DeviceClass " + class
	}
	return resource
}

// inFlightCap returns the in-flight cap that has no room for one more replica of a group.
func (d *decision) inFlightCap(i int) model.Reason {
	g, all := &d.Groups[i], d.AllInFlight(d.given)
	own, most := g.Pending()+d.given[i], place.OrUnbounded(d.Policy.MaxInFlight)
	switch {
	case g.Trying() && own+g.Hosts > g.InFlight:
		return triedOnNode(g)
	case own+g.Hosts > g.InFlight:
		return groupInFlight.with(place.ConservativeMode, g.Name, model.Pods(g.InFlight), own)
	case all+g.Hosts > most:
		return allInFlight.with(model.Pods(most), all)
	}
	return model.Reason{}
}

// capNames names the caps that apply to a group.
func (d *decision) capNames(g *place.Group) string {
	var names []string
	if d.Policy.MaxInFlight > 0 {
		names = append(names, fmt.Sprintf("maxInFlight %d", d.Policy.MaxInFlight))
	}
	if g.InFlight != place.MaxCount {
		names = append(names, place.ConservativeMode)
	}
	return strings.Join(names, " and ")
}

// following counts the pods of a group that follow a launch.
func (d *decision) following(i int) string {
	g, n := &d.Groups[i], d.HeldOf(i)
	if n == 0 {
		return ""
	}
	when := "earlier pods have joined, because of " + d.capNames(g)
	if g.Trying() || len(d.SharedNodes.UnprovenPools(i)) > 0 {
		when = "a pod has joined"
	}
	return fmt.Sprintf("; %d more %s when %s", n, model.OneOrMany(n, "follows", "follow"), when)
}
