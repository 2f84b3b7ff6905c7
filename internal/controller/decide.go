package controller

import (
	"maps"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// decide plans for the view, leaves alone what other RayClusters have on their way, and reserves what it launches.
// Cycles of RayClusters run side by side: if others have reserved more since the plan began, it plans again.
func (c *Controller) decide(r *record, v *observe.View) addon.Intent {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		before := c.promises.Before(&v.Cluster, v.Now)
		v.Cluster.Promise(before)
		i := r.memory.Decide(*v, &c.config, c.compute, r.features)
		if v.Mode != nodepool.Managed || len(i.Launch) == 0 || v.Cluster.Stock == nil ||
			c.promises.Reserve(&v.Cluster, i.Launch, before, v.Now) || attempt == attempts {
			return i
		}
	}
}

// heavyDemand is the number of listed requests and bundles of gangs from which a plan is heavy. The planner takes on a
// part of very much demand, but reads and reports all of it: from there on, that takes tens of megabytes and tenths of
// a second (BenchmarkKinds of package planner).
const heavyDemand = 2000

// heavy reports whether a snapshot has very much demand.
func heavy(s *planner.Snapshot) bool {
	listed := 0
	for _, requests := range s.RequestLists() {
		listed += len(requests)
	}
	for i := range s.Gangs {
		for _, bundles := range s.Gangs[i].Alternatives() {
			listed += len(bundles)
		}
	}
	return listed >= heavyDemand
}

// compute computes a plan, and a heavy one alone.
func (c *Controller) compute(s planner.Snapshot) planner.Plan {
	if heavy(&s) {
		c.heavy.Lock()
		defer c.heavy.Unlock()
	}
	return planner.Compute(s, s.Policy)
}

// Decide plans for the view; compute computes the plan of a snapshot.
func (m *memory) Decide(
	v observe.View, s *Config, compute func(planner.Snapshot) planner.Plan, features []addon.Feature,
) addon.Intent {
	var warm *planner.Warm
	for _, f := range features {
		if f.Want != nil && warm == nil {
			warm = f.Want(&v)
		}
	}
	i := addon.Intent{Snapshot: m.snapshot(v, s, warm)}
	i.Plan = compute(i.Snapshot)
	i.Launch, i.Held = m.gangs.Launches(v.Now, i.Plan, i.Snapshot, compute), heldBack(i.Plan)
	for _, f := range features {
		if f.Launch != nil {
			f.Launch(&v, &i)
		}
	}
	if v.Live() {
		rules := m.reductionRules(&v, s)
		i.Removals, i.Drains = rules.Removals(v, i.Plan), rules.DrainRequests(v, i.Plan)
		i.Removals = append(i.Removals, scaledown.Evicted(v, i.Launch)...)
		if m.lag.MayHidePlacement(v.Now) || m.gangs.MayHidePlacement(v.Now) {
			i.Drains = nil // idle workers may have work by now, and even a refused drain does harm
		}
	}
	return i
}

// reductionRules returns the rules for taking workers away.
func (m *memory) reductionRules(v *observe.View, s *Config) scaledown.Rules {
	return scaledown.Rules{Drains: m.drains, Breakers: m.breakers, Waits: &m.clocks, TakenBack: m.refusals.TakenBack,
		Settled:           func(member observe.Member) bool { return m.settled(v.Now, member) },
		AllocationTimeout: s.AllocationTimeout, DeadGrace: s.DeadGrace, DrainDeadline: s.DrainDeadline,
		Moved: func(member observe.Member) bool {
			allowed := v.Cluster.Consolidate.Allows(nodepool.ConsolidateRestartable)
			if back := v.Cluster.GiveBack; back.Has(member.UID) {
				ends := back.Force || v.Restartable[member.Node.ID] && (back.Taker == "" || allowed)
				return ends && !v.Now.Before(back.Deadline) &&
					m.drains.AcceptedFor(member.Node.ID, v.Now) >= back.LeastDrain()
			}
			return allowed && v.Restartable[member.Node.ID]
		}}
}

// Targets returns the targets of the patch that carries an intent out. It takes back the names of pods that returned.
//
// All targets are one patch, so a policy that refuses the growth of one group would keep the drained workers of others,
// which cost money. So after a patch that failed, the next one leaves out growth of groups that lose no worker, and so
// does every second one.
func (m *memory) Targets(v observe.View, i *addon.Intent, s *Config) (
	[]nodepool.Target, []raydemand.Finding, error,
) {
	cluster, launch := m.Patches.named.WithReturned(v, m.drains, s.AllocationTimeout), i.Launch
	if len(i.Removals) > 0 && m.Patches.rest.Failures()%2 == 1 {
		launch = maps.Clone(launch)
		maps.DeleteFunc(launch, func(group string, _ int) bool {
			leaving, _ := i.LeavingText(group)
			return len(leaving) == 0
		})
	}
	return nodepool.Targets(cluster, launch, scaledown.PodsOf(i.Removals))
}

// heldBack returns per group how many pods the policy's in-flight caps hold back.
func heldBack(plan planner.Plan) map[string]int {
	held := map[string]int{}
	for _, g := range plan.Groups {
		if g.Held > 0 {
			held[g.Name] = g.Held
		}
	}
	return held
}
