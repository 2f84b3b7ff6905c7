package why

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// bound is how many more pods a group may have beside the launches of the plan, 0 or a replica or more, and the limit
// that says so.
type bound struct {
	model.Reason
	room int64
}

// limits are those of the groups beside some launches.
type limits struct {
	*place.Search
	given  []int64
	bounds []*bound // those that were asked for: many shapes of demand ask for the same
	full   func() *landing.Taken
}

func limitsBeside(p *place.Search, given []int64) *limits {
	return &limits{p, given, make([]*bound, len(p.Groups)),
		sync.OnceValue(func() *landing.Taken { return p.SharedNodes.AllOccupied(given) })}
}

// limit returns the limit that prevents one more replica of a group; no reason if none does.
func (d *limits) limit(i int) model.Reason {
	if b := d.boundOf(i); b.room == 0 {
		return b.Reason
	}
	return model.Reason{}
}

// boundOf returns the tightest limit of a group.
func (d *limits) boundOf(i int) *bound {
	if d.bounds[i] == nil {
		tightest := d.tightest(i)
		d.bounds[i] = &tightest
	}
	return d.bounds[i]
}

func (d *limits) tightest(i int) bound {
	g, quota := &d.Groups[i], d.QuotaRoom(i, d.given)
	pods, spare := g.Current+d.given[i], d.Spare(d.given)
	has, have := having("has", g.Current, d.given[i]), ""
	if spare < place.MaxCount {
		var all int64
		for k := range d.Groups {
			all += d.Groups[k].Current
		}
		have = having("have", all, place.Sum(d.given))
	}
	switch {
	case g.Blocked != "":
		return bound{blocked(g), 0}
	case pods+g.Hosts > g.MaxPods:
		return bound{atMax.with(g.Name, g.MaxPods, has), 0}
	case spare < g.Hosts && spare > 0:
		return bound{overBound.with(d.Bound, have, g.Name, model.Pods(g.Hosts)), 0}
	case spare < g.Hosts:
		return bound{atBound.with(d.Bound), 0}
	case quota < g.Hosts:
		return bound{atQuota.with(g.Name, d.quotaOf(i)), 0}
	}
	pool := d.PoolRoom(i, d.given)
	if pool < g.Hosts {
		return bound{d.poolLimit(i, has), 0}
	}
	if d.Held != nil {
		if reason := d.inFlightCap(i); said(reason) {
			return bound{reason, 0}
		} else if d.Held[i] > 0 {
			return bound{behind.with(g.Name, model.Pods(g.Pending()+d.given[i]), d.capNames(g)), 0}
		}
	}
	b := bound{maxIs.with(g.MaxPods, has), g.MaxPods - pods}
	if spare < b.room {
		b = bound{boundIs.with(d.Bound, have), spare}
	}
	if quota < b.room {
		b = bound{quotaIs.with(d.quotaOf(i)), quota}
	}
	if pool < b.room {
		b = bound{poolsHold.with(d.SharedNodes.Most[i], d.beside(i, "them"), has, d.rivals(i)), pool}
		if d.PoolRoomUnpromised(i, d.given) > pool {
			b.Reason = promisedMore.with(d.promised(i))
		}
	}
	b.room -= b.room % g.Hosts
	b.Reason = after(fmt.Sprintf("group %s can add only %s: ", g.Name, model.Pods(b.room)), b.Reason)
	return b
}

func having(verb string, pods, launching int64) string {
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
func (d *limits) quotaOf(i int) string {
	quota, left, takes, _ := d.Quotas.Tightest(i, d.given)
	needs, all := model.Pair(quota.Resource, takes, quota.Amount)
	free, _ := model.Pair(quota.Resource, max(left, 0), quota.Amount)
	are := "are"
	if free == "1" {
		are = "is"
	}
	text := fmt.Sprintf("%s has %s %s, of which %s %s left; one pod takes %s", quota.Name, all, quota.Resource,
		free, are, needs)
	if quota.Why != "" {
		text += " (" + quota.Why + ")"
	}
	return text
}

// poolLimit explains that a group's pools have no room for another replica.
func (d *limits) poolLimit(i int, has string) model.Reason {
	g := &d.Groups[i]
	if len(d.SharedNodes.UnprovenPools(i)) > 0 {
		return d.triedInPool(i)
	}
	where, nodes := "the nodes", "the nodes"
	if g.Pod != nil && g.Pod.Node != "" {
		where = "node " + g.Pod.Node + ", which spec.nodeName names,"
		nodes = where
	} else if len(g.Pools) > 0 {
		names := make([]string, len(g.Pools))
		for k, pool := range g.Pools {
			names[k] = cmp.Or(pool.Name, "of nodes without a name")
		}
		where = poolsNamed(names)
		nodes = "the nodes of " + where
	}
	if d.PoolRoomUnpromised(i, d.given) >= g.Hosts {
		return promisedTo.with(g.Name, nodes, d.promised(i))
	}
	cause := d.shortage(i)
	if most := d.SharedNodes.Most[i]; most > 0 || cause == "" {
		cause = model.Join(fmt.Sprintf("at most %d %s (%s)", most, d.beside(i, "it"), has), cause)
	}
	assumed := ""
	for _, place := range d.SharedNodes.NewNodesFor(i) {
		if place.Like != "" {
			assumed += fmt.Sprintf("; nodes of pool %s differ, so a new one counts as the smallest that fits, %s",
				place.Pool, place.Like)
		}
	}
	return poolFull.with(where, g.Name, cause, d.rivals(i), assumed)
}

func poolsNamed(names []string) string {
	return model.OneOrMany(int64(len(names)), "pool ", "pools ") + joined(names)
}

// triedInPool says why only one replica of a group is launched beyond what fits on known nodes.
func (d *limits) triedInPool(i int) model.Reason {
	g := &d.Groups[i]
	return triedInPool.with(g.Name, poolsNamed(d.SharedNodes.UnprovenPools(i)), model.Pods(g.Hosts))
}

// triedOnNode says why only one replica of a group is launched until one has joined.
func triedOnNode(g *place.Group) model.Reason {
	return tried.with(g.Name, g.NodeFit.Why, model.Pods(g.Hosts))
}

// promised names the pods of other RayClusters that are on their way to nodes of a group.
func (d *limits) promised(i int) string {
	pods, names := map[string]int64{}, []string{}
	for _, p := range d.PromisedBeside(i) {
		if pods[p.RayCluster] == 0 {
			names = append(names, p.RayCluster)
		}
		pods[p.RayCluster] += p.Pods
	}
	for k, name := range names {
		names[k] = fmt.Sprintf("%s of RayCluster %s", model.Pods(pods[name]), name)
	}
	return model.List(names)
}

// beside says which other pods the most pods of a group does not count.
func (d *limits) beside(i int, pools string) string {
	if d.Groups[i].Pod != nil {
		return "with what other pods leave free"
	}
	return "if no other pods use " + pools
}

// rivals names the pods of other groups that take room on the nodes of a group, if the group's own pods do not fill
// them.
func (d *limits) rivals(i int) string {
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
func (d *limits) shortage(i int) string {
	g := &d.Groups[i]
	if g.Pod == nil {
		return ""
	}
	short := d.SharedNodes.Shortage(d.full(), i)
	unit := short.Resource
	if unit == "ephemeral-storage" || strings.HasPrefix(unit, "hugepages-") {
		unit = "memory" // all three are in bytes
	}
	taken, total := model.Pair(unit, short.Total-short.Left, short.Total)
	need, _ := model.Pair(unit, short.Need, short.Need)
	switch {
	case short.Rule != "":
		return short.Rule + " keeps its pods off all nodes that have room for them"
	case short.Cards:
		return "no card has enough left for one of its pods"
	case short.Resource != "" && short.Left < short.Need:
		return fmt.Sprintf("%s of %s %s are taken", taken, total, short.Resource)
	case short.Resource != "":
		return fmt.Sprintf("%s of %s %s are taken, and no node has the %s left that one of its pods needs",
			taken, total, short.Resource, need)
	case d.SharedNodes.Most[i] == 0 && g.Trying():
		return g.NodeFit.Why + ", and its pools may add no node"
	case d.SharedNodes.Most[i] == 0:
		return "other pods leave no room for them, and its pools may add no node"
	case g.NumOfHosts > 1:
		return fmt.Sprintf("what is left has room for fewer than the %d hosts of a replica", g.NumOfHosts)
	}
	return ""
}

// inFlightCap returns the in-flight cap that has no room for one more replica of a group.
func (d *limits) inFlightCap(i int) model.Reason {
	g := &d.Groups[i]
	var all int64
	for k := range d.Groups {
		all += d.Groups[k].Pending() + d.given[k]
	}
	now := func(have string, n, given, most int64) string {
		if n > most && given > 0 {
			return fmt.Sprintf("; launching %s, because a gang or replica that is larger is launched whole and alone",
				model.Pods(given))
		}
		return fmt.Sprintf(" (%s %d)", have, n)
	}
	own, most := g.Pending()+d.given[i], place.OrUnbounded(d.Policy.MaxInFlight)
	switch {
	case g.Trying() && own+g.Hosts > g.InFlight:
		return triedOnNode(g)
	case own+g.Hosts > g.InFlight:
		return groupInFlight.with(place.ConservativeMode, g.Name, model.Pods(g.InFlight),
			now("has", own, d.given[i], g.InFlight))
	case all+g.Hosts > most:
		return allInFlight.with(model.Pods(most), now("have", all, place.Sum(d.given), most))
	}
	return model.Reason{}
}

// capNames names the caps that apply to a group.
func (d *limits) capNames(g *place.Group) string {
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
func (d *limits) following(i int) string {
	g, n := &d.Groups[i], d.HeldOf(i)
	switch {
	case n > 0 && (g.Trying() || len(d.SharedNodes.UnprovenPools(i)) > 0):
		return fmt.Sprintf("; %d more follow when a pod has joined", n)
	case n > 0:
		return fmt.Sprintf("; %d more follow when earlier pods have joined, because of %s", n, d.capNames(g))
	}
	return ""
}
