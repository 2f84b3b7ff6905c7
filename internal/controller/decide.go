package controller

import (
	"context"
	"errors"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// decide plans for the view, leaves alone what other RayClusters have on their way, and reserves what it launches.
// Cycles of RayClusters run side by side: if others have reserved more since the plan began, it plans again.
func (c *Controller) decide(ctx context.Context, r *record, v *observe.View) (addon.Intent, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		before := c.promises.Before(&v.Cluster, v.Now)
		v.Cluster.Promise(before)
		i, err := c.plan(ctx, r, *v)
		switch {
		case err != nil, v.Mode != nodepool.Managed, len(i.Launch) == 0, v.Cluster.Stock == nil:
			return i, err
		case c.promises.Reserve(&v.Cluster, i.Launch, before, v.Now), attempt == attempts:
			return i, nil
		}
	}
}

// plan plans for the view. It fails only when ctx ends before a heavy plan is computed.
func (c *Controller) plan(ctx context.Context, r *record, v observe.View) (addon.Intent, error) {
	return r.memory.Decide(v, &c.config, func(snapshot planner.Snapshot) (planner.Plan, error) {
		return c.config.plans.Compute(ctx, snapshot, &r.heavy)
	}, r.features)
}

// paused returns why nothing may be taken away now, or "".
func (c *Controller) paused(r *record, v observe.View) string {
	return r.memory.Paused(v, c.link(r))
}

// doubt returns why Ray's reading does not prove that a node is idle, or "".
func (c *Controller) doubt(r *record, v observe.View) string {
	return r.memory.Doubt(v, c.link(r))
}

func (c *Controller) link(r *record) link {
	return link{Now: c.config.Now(), Since: r.gcs.Since, MaxDataAge: c.config.MaxDataAge}
}

// compute computes the plan of a snapshot.
type compute func(planner.Snapshot) (planner.Plan, error)

// Decide plans for the view. It fails only if a plan could not be computed; then the intent has only the snapshot.
func (m *memory) Decide(
	v observe.View, s *Config, planned compute, features []addon.Feature,
) (addon.Intent, error) {
	var warm *planner.Warm
	for _, f := range features {
		if f.Want != nil && warm == nil {
			warm = f.Want(&v)
		}
	}
	i := addon.Intent{Snapshot: m.snapshot(v, s, warm)}
	var errs error
	compute := func(snapshot planner.Snapshot) planner.Plan {
		plan, err := planned(snapshot)
		errs = errors.Join(errs, err)
		return plan
	}
	i.Plan = compute(i.Snapshot)
	i.Launch, i.Held = m.gangs.Launches(v.Now, i.Plan, i.Snapshot, compute), heldBack(i.Plan)
	if errs != nil {
		return addon.Intent{Snapshot: i.Snapshot}, errs
	}
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
	return i, nil
}

// reductionRules returns the rules for taking workers away.
func (m *memory) reductionRules(v *observe.View, s *Config) scaledown.Rules {
	return scaledown.Rules{Drains: m.drains, Breakers: m.breakers, Waits: &m.clocks, TakenBack: m.refusals.TakenBack,
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
func (m *memory) Targets(v observe.View, i *addon.Intent, s *Config) (
	[]nodepool.Target, []raydemand.Finding, error,
) {
	cluster := m.Patches.named.WithReturned(v, m.drains, s.AllocationTimeout)
	return nodepool.Targets(cluster, i.Launch, scaledown.PodsOf(i.Removals))
}

// Conclude remembers where the next plan continues.
func (m *memory) Conclude(i *addon.Intent) {
	m.turn = ""
	if deferred := i.Plan.Deferred; deferred != nil {
		m.turn = deferred.Next
	}
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
