package report

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/reasons"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// UnusedGPUs counts, by cause, the GPUs that are free on workers that have joined Ray. The causes are the first that
// hold: a worker that would stay for its minimum after its idle timeout counts as idle_timeout until then. A GPU that a
// placement group reserves is not free.
func UnusedGPUs(s *model.Snapshot, p *model.Plan) map[string]raydemand.Amount {
	why := WhyUnused(s, p)
	unused := map[string]raydemand.Amount{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		free := n.Available[raydemand.GPU]
		if free <= 0 || !hasJoined(n) {
			continue
		}
		cause := why(n)
		unused[cause] = unused[cause].Plus(free)
	}
	return unused
}

// WhyUnused returns a function that says why the free part of a worker that has joined Ray is unused: of its GPUs, or
// of its CPUs if it has no GPUs.
func WhyUnused(s *model.Snapshot, p *model.Plan) func(n *model.Node) string {
	groups := groupsOf(s, p)
	var stops map[string]bool
	if len(p.Terminate) > 0 {
		stops = make(map[string]bool, len(p.Terminate))
		for _, stop := range p.Terminate {
			stops[stop.Pod] = true
		}
	}
	warm := warmPods(p)
	waits := map[string]bool{raydemand.GPU: waitsFor(p, raydemand.GPU), raydemand.CPU: waitsFor(p, raydemand.CPU)}
	return func(n *model.Node) string {
		switch resource := n.Main(); {
		case n.State == model.Leaving || stops[n.Pod]:
			return model.UnusedLeaving
		case n.State == model.Idle && warm[n.Pod]:
			return model.UnusedWarm
		case n.State == model.Idle:
			return whyIdle(n, groups[n.Group])
		default:
			return whyUnused(n, resource, waits[resource])
		}
	}
}

// warmPods returns the idle workers that a capacity policy keeps; nil if there are none.
func warmPods(p *model.Plan) (warm map[string]bool) {
	for i := range p.Warm {
		for _, pod := range p.Warm[i].Kept {
			if warm == nil {
				warm = map[string]bool{}
			}
			warm[pod] = true
		}
	}
	return warm
}

// hasJoined reports whether the GPUs of a node are there: a pod that leaves without having joined Ray has a time since
// which it is on its way.
func hasJoined(n *model.Node) bool {
	return n.State == model.Running || n.State == model.Idle || n.State == model.Leaving && n.Since.IsZero()
}

// idleGroup is what decides how long the idle workers of a group stay. A group that the snapshot lacks has none.
type idleGroup struct {
	timeout *float64
	hosts   int
	// spare: the group is above its minimum by one replica or more.
	spare bool
}

func groupsOf(s *model.Snapshot, p *model.Plan) map[string]idleGroup {
	groups := make(map[string]idleGroup, len(s.Groups))
	for i := range s.Groups {
		g := idleGroup{timeout: s.IdleTimeoutSeconds, hosts: max(s.Groups[i].NumOfHosts, 1)}
		if own := s.Groups[i].IdleTimeoutSeconds; own != nil {
			g.timeout = own
		}
		groups[s.Groups[i].Name] = g
	}
	for i := range p.Groups {
		row := &p.Groups[i]
		g := groups[row.Name]
		g.spare = row.Desired-max(g.hosts, 1) >= row.Min
		groups[row.Name] = g
	}
	return groups
}

// whyIdle returns why an idle worker stays.
func whyIdle(n *model.Node, g idleGroup) string {
	switch {
	case g.timeout == nil:
		return model.UnusedNoTimeout
	case n.IdleSeconds <= *g.timeout:
		return model.UnusedTimeout
	case !g.spare:
		return model.UnusedMinimum
	case g.hosts > 1:
		return model.UnusedReplica
	}
	return model.UnusedKept
}

// whyUnused returns why a busy worker has some of a resource free. waits: demand for it waits that is not placed on
// workers.
func whyUnused(n *model.Node, resource string, waits bool) string {
	switch {
	case n.Available[resource] < n.Total[resource] && waits:
		return model.UnusedFragment
	case n.Available[resource] < n.Total[resource]:
		return model.UnusedNoDemand
	case len(n.Activity) == 0:
		return model.UnusedStarting
	}
	if code := reasons.WhyBusy(n)[0].Code; code != model.PodBusy {
		return code
	}
	return model.UnusedOtherUse
}

// waitsFor reports whether some demand for a resource has no place on workers that have joined.
func waitsFor(p *model.Plan, resource string) bool {
	for i := range p.Summary {
		d := &p.Summary[i]
		if d.Served == d.Asked {
			continue
		}
		if d.Resources[resource] > 0 {
			return true
		}
		if d.Gang == nil {
			continue
		}
		for _, bundle := range d.Gang.Bundles {
			if bundle[resource] > 0 {
				return true
			}
		}
	}
	return false
}
