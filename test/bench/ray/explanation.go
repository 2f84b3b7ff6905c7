package main

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// view is a snapshot as each planner sees it.
type view struct {
	ray, us planner.Snapshot
	// launched counts pods that Ray's planner sees on their way although they count as launched by it.
	launched map[string]int
}

// explanation is a known reason why plans differ. It removes the cause from the snapshot. If the difference is then
// gone, the cause explains it. Each has a row of its name in docs/design/0003-differences-from-ray.md.
type explanation struct {
	name string
	// without changes the view, but never the contents of its slices. It reports false if the snapshot does not have
	// the cause.
	without func(v *view, d duel) bool
	// of lists the aspects that it can explain; none means all. A view without launches cannot explain prices.
	of []aspect
}

// explanations are tried in this order, Ray's mistakes first.
var explanations = []explanation{
	{name: "removed-group", without: plainly(withoutRemovedGroups)},
	{name: "more-available-than-total", without: plainly(withoutOverstatement)},
	{name: "minimum-above-maximum", without: plainly(withoutImpossibleMinima)},
	{name: "stopping-pod-takes-demand", without: plainly(withoutStopRequested)},
	{name: "doomed-pod-takes-demand", without: withoutDoomed},
	{name: "strict-pack-split", without: plainly(withoutSplitGangs)},
	{name: "planned-minimum-shared", without: plainly(withoutPlannedMinima)},
	{name: "leaving-pods-fill-limits", without: plainly(withoutLeaving)},
	{name: "gang-fallbacks", without: plainly(withoutFallbacks)},
	{name: "multi-host-replicas", without: plainly(withoutReplicas)},
	{name: "group-priority", without: plainly(withoutPriorities)},
	{name: "in-flight-caps", without: plainly(withoutInFlightCaps), of: []aspect{servesLess, stops}},
	{name: "running-before-coming", without: plainly(withoutComing), of: []aspect{stops}},
	{name: "unmet-constraint-keeps-nodes", without: withoutUnmetConstraint},
	{name: "other-of-equal-victims", without: withoutVictims},
	{name: "parts-on-one-card", without: plainly(withoutCards)},
	{name: "most-under-a-limit", without: withoutLimits, of: []aspect{servesLess, stops}},
}

// plainly adapts explanations that need no planner.
func plainly(without func(v *view) bool) func(*view, duel) bool {
	return func(v *view, _ duel) bool { return without(v) }
}

// editNodes changes copies of nodes; edit returns false for a node to leave out. It reports whether anything changed.
func editNodes(s *planner.Snapshot, edit func(n *planner.Node) (keep, changed bool)) bool {
	var nodes []planner.Node
	any := false
	for _, n := range s.Nodes {
		keep, changed := edit(&n)
		any = any || changed || !keep
		if keep {
			nodes = append(nodes, n)
		}
	}
	s.Nodes = nodes
	return any
}

// edit changes copies and reports whether it changed any.
func edit[T any](all *[]T, change func(one *T) (changed bool)) bool {
	*all = slices.Clone(*all)
	any := false
	for i := range *all {
		any = change(&(*all)[i]) || any
	}
	return any
}

func withoutRemovedGroups(v *view) bool {
	return editNodes(&v.ray, func(n *planner.Node) (bool, bool) {
		known := slices.ContainsFunc(v.ray.Groups, func(g planner.Group) bool { return g.Name == n.Group })
		return known, false
	})
}

func withoutOverstatement(v *view) bool {
	return editNodes(&v.ray, func(n *planner.Node) (bool, bool) {
		changed := false
		available := n.Available.Clone()
		for name, amount := range available {
			if amount > n.Total[name] {
				available[name], changed = n.Total[name], true
			}
		}
		n.Available = available
		return true, changed
	})
}

// withoutImpossibleMinima freezes groups whose minimum is above the maximum, as Heliostat does: the operator stops
// reconciling the cluster, so launches have no effect.
func withoutImpossibleMinima(v *view) bool {
	return edit(&v.ray.Groups, func(g *planner.Group) bool {
		if g.Min <= g.Max {
			return false
		}
		live := 0
		for _, n := range v.ray.Nodes {
			if n.Group == g.Name && n.State != planner.AllocationTimeout && n.State != planner.Leaving {
				live++
			}
		}
		g.Min, g.Max = live, live
		return true
	})
}

// withoutStopRequested removes pods that were asked to stop from the view of Ray's planner, because they will be gone.
func withoutStopRequested(v *view) bool {
	return editNodes(&v.ray, func(n *planner.Node) (bool, bool) { return n.IMState != "RAY_STOP_REQUESTED", false })
}

// withoutSplitGangs gives every bundle of a STRICT_PACK gang all of the gang's selectors: the bundles must share a
// node, so it must match each of them.
func withoutSplitGangs(v *view) bool {
	return edit(&v.ray.Gangs, func(g *raydemand.Gang) bool {
		if g.Strategy != raydemand.StrictPack || len(g.BundleSelectors) == 0 {
			return false
		}
		joint := joined(g.BundleSelectors)
		selectors := make([]raydemand.Selector, len(g.Bundles))
		for i := range selectors {
			selectors[i] = joint
		}
		g.BundleSelectors = selectors
		return true
	})
}

// joined returns the selector that holds if all of them hold: one constraint per label, as in Ray's map form.
func joined(selectors []raydemand.Selector) raydemand.Selector {
	byKey := map[string]raydemand.Constraint{}
	for _, c := range slices.Concat(selectors...) {
		other, twice := byKey[c.Key]
		if !twice {
			byKey[c.Key] = c
			continue
		}
		if c.Op == raydemand.In {
			c, other = other, c
		}
		// Now other is of the kind In, unless both are NotIn.
		both := raydemand.Constraint{Key: c.Key, Op: other.Op}
		switch {
		case other.Op == raydemand.NotIn:
			both.Values = slices.Concat(c.Values, other.Values)
		default:
			both.Values = slices.DeleteFunc(slices.Clone(other.Values), func(value string) bool {
				return slices.Contains(c.Values, value) == (c.Op == raydemand.NotIn)
			})
		}
		byKey[c.Key] = both
	}
	return raydemand.NewSelector(slices.Collect(maps.Values(byKey))...)
}

// withoutPlannedMinima shows Ray's planner the pods of minimums as on their way already, as many as the limit on all
// workers allows.
func withoutPlannedMinima(v *view) bool {
	live := map[string]int{}
	spare := math.MaxInt
	if v.ray.MaxWorkers != nil {
		spare = *v.ray.MaxWorkers
	}
	for _, n := range v.ray.Nodes {
		if n.State != planner.AllocationTimeout && n.State != planner.Leaving {
			live[n.Group]++
			spare--
		}
	}
	v.ray.Nodes, v.launched = slices.Clone(v.ray.Nodes), map[string]int{}
	return edit(&v.ray.Groups, func(g *planner.Group) bool {
		missing := g.Min*g.NumOfHosts - live[g.Name]
		if missing <= 0 {
			return false
		}
		for i := range min(missing, max(spare, 0)) {
			pod := fmt.Sprintf("minimum-%s-%d", g.Name, i)
			v.ray.Nodes = append(
				v.ray.Nodes,
				planner.Node{Pod: pod, Group: g.Name, State: planner.Pending, IMState: "REQUESTED"},
			)
			v.launched[g.Name]++
			spare--
		}
		g.Min = (live[g.Name] + v.launched[g.Name]) / g.NumOfHosts
		return true
	})
}

// withoutLeaving removes leaving pods from the view of Heliostat, which counts them toward limits while they exist.
func withoutLeaving(v *view) bool {
	return editNodes(&v.us, func(n *planner.Node) (bool, bool) { return n.State != planner.Leaving, false })
}

func withoutFallbacks(v *view) bool {
	return edit(&v.us.Gangs, func(g *raydemand.Gang) bool {
		had := len(g.Fallbacks) > 0
		g.Fallbacks = nil
		return had
	})
}

// withoutReplicas makes each host of a replica a replica of its own.
func withoutReplicas(v *view) bool {
	alone := func(g *planner.Group) bool {
		if g.NumOfHosts == 1 {
			return false
		}
		g.Min, g.Max, g.NumOfHosts = g.Min*g.NumOfHosts, g.Max*g.NumOfHosts, 1
		return true
	}
	edit(&v.ray.Groups, alone)
	return edit(&v.us.Groups, alone)
}

func withoutPriorities(v *view) bool {
	equal := func(g *planner.Group) bool {
		had := g.Priority != 0
		g.Priority = 0
		return had
	}
	edit(&v.ray.Groups, equal)
	return edit(&v.us.Groups, equal)
}

// withoutInFlightCaps allows any number of pods on the way at once, as Ray's planner does regardless of upscalingMode.
func withoutInFlightCaps(v *view) bool {
	had := v.us.UpscalingMode == "Conservative"
	v.us.UpscalingMode = ""
	return had
}

// withoutComing keeps only joined nodes and stops pods from coming. Demand goes to existing nodes first, which is where
// Ray's scheduler places it; Ray's planner may place it on a pod on its way and stop an idle one.
func withoutComing(v *view) bool {
	v.launched = nil
	for _, s := range []*planner.Snapshot{&v.ray, &v.us} {
		editNodes(s, func(n *planner.Node) (bool, bool) { return n.State != planner.Pending, false })
		here := map[string]int{}
		for _, n := range s.Nodes {
			if n.State == planner.Running || n.State == planner.Idle {
				here[n.Group]++
			}
		}
		edit(&s.Groups, func(g *planner.Group) bool {
			g.Min, g.Max = 0, here[g.Name]/g.NumOfHosts
			return true
		})
	}
	return true
}
