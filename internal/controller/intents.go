package controller

import (
	"errors"
	"slices"

	"heliostat.dev/heliostat/internal/addon/provisioning"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// compute computes the plan of a snapshot, and may change how much work the snapshot's policy allows.
type compute func(*planner.Snapshot) (planner.Plan, error)

// Decide plans for the view. It fails only if a plan could not be computed; then the intent has only the snapshot.
func (m *memory) Decide(v observe.View, s *memorySettings, planned compute) (Intent, error) {
	i := Intent{Snapshot: m.snapshot(v, s, warmWanted(v))}
	var errs error
	compute := func(snapshot *planner.Snapshot) planner.Plan {
		plan, err := planned(snapshot)
		errs = errors.Join(errs, err)
		return plan
	}
	i.Plan = compute(&i.Snapshot)
	again := func(snapshot planner.Snapshot) planner.Plan { return compute(&snapshot) }
	i.Launch, i.Held = m.gangs.Launches(v.Now, i.Plan, i.Snapshot, again), heldBack(i.Plan)
	if errs != nil {
		return Intent{Snapshot: i.Snapshot}, errs
	}
	m.askForNodes(v, &i)
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

// askForNodes lets launches wait for the nodes of a whole gang, where groups ask for it. Other modes write nothing, so
// nothing waits; what this process has asked for before, it takes back.
func (m *memory) askForNodes(v observe.View, i *Intent) {
	switch {
	case v.Mode == nodepool.Managed && v.Live():
		m.provisioned = true
		i.Nodes = m.provisions.Decide(v.Now, &v.Cluster, i.Launch, len(v.Demand.Gangs) > 0)
		i.Launch = i.Nodes.Launch
	case m.provisioned && mode.HandedBack(&v.Cluster, v.Mode, v.Why):
		i.Nodes = provisioning.HandBack(&v.Cluster)
	}
	for k := range i.Plan.Groups {
		if g := &i.Plan.Groups[k]; i.Nodes.Waits[g.Name] != "" {
			waits := planner.Reason{Code: planner.CodeProvisioning, Message: i.Nodes.Waits[g.Name]}
			g.Reasons = slices.Insert(slices.Clone(g.Reasons), 0, waits)
		}
	}
}

// reductionRules returns the rules for taking workers away.
func (m *memory) reductionRules(v *observe.View, s *memorySettings) scaledown.Rules {
	return scaledown.Rules{Drains: m.drains, Breakers: m.breakers, Waits: &m.clocks, TakenBack: m.refusals.TakenBack,
		AllocationTimeout: s.AllocationTimeout, DeadGrace: s.DeadGrace, DrainDeadline: s.DrainDeadline,
		Moved: m.endable.in(&v.Cluster)}
}

// Targets returns the targets of the patch that carries an intent out. It takes back the names of pods that returned.
func (m *memory) Targets(v observe.View, i *Intent, s *memorySettings) (
	[]nodepool.Target, []raydemand.Finding, error,
) {
	cluster := m.Patches.named.WithReturned(v, m.drains, s.AllocationTimeout)
	return nodepool.Targets(cluster, i.Launch, scaledown.PodsOf(i.Removals))
}

// Conclude remembers where the next plan continues.
func (m *memory) Conclude(i *Intent) { m.turn = i.nextTurn() }

// warmWanted returns what the capacity policy of the RayCluster wants free now; nil if nothing.
func warmWanted(v observe.View) *planner.Warm {
	policy := v.Cluster.Policy
	if policy == nil {
		return nil
	}
	return planner.WarmOf(policy.Source, policy.At(v.Now))
}
