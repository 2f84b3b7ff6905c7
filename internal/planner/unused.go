package planner

import (
	"cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// UnusedGPUs counts, by cause, the GPUs that are free on workers that have joined Ray. The causes are the first that
// hold: a worker that would stay for its minimum after its idle timeout counts as idle_timeout until then. A GPU that a
// placement group reserves is not free.
func UnusedGPUs(s Snapshot, p Plan) map[string]raydemand.Amount {
	cause, unused := WhyUnused(&s, &p), map[string]raydemand.Amount{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Available[raydemand.GPU] > 0 && hasJoined(n) {
			code := cause(n)
			unused[code] = unused[code].Plus(n.Available[raydemand.GPU])
		}
	}
	return unused
}

// hasJoined reports whether the GPUs of a node are there: a pod that leaves without having joined Ray has a time since
// which it is on its way.
func hasJoined(n *Node) bool {
	return n.State == Running || n.State == Idle || n.State == Leaving && n.Since.IsZero()
}

// WhyUnused returns a function that says why the free part of a worker that has joined Ray is unused: of its GPUs, or
// of its CPUs if it has no GPUs.
func WhyUnused(s *Snapshot, p *Plan) func(n *Node) string {
	stops := map[string]bool{}
	for _, stop := range p.Terminate {
		stops[stop.Pod] = true
	}
	waits := map[string]bool{raydemand.GPU: waitsFor(p, raydemand.GPU), raydemand.CPU: waitsFor(p, raydemand.CPU)}
	return func(n *Node) string {
		resource := n.Main()
		part := n.Available[resource] < n.Total[resource]
		switch {
		case n.State == Leaving || stops[n.Pod]:
			return model.UnusedLeaving
		case n.State == Idle:
			return cmp.Or(p.Stays[n.Pod], model.UnusedNoTimeout) // the plan does not know the group
		case part && waits[resource]:
			return model.UnusedFragment
		case part:
			return model.UnusedNoDemand
		case len(n.Activity) == 0:
			return model.UnusedStarting
		}
		if code := n.Busy()[0].Code; code != model.PodBusy {
			return code
		}
		return model.UnusedOtherUse
	}
}

// waitsFor reports whether some demand for a resource has no place on workers that have joined.
func waitsFor(p *Plan, resource string) bool {
	for i := range p.Summary {
		d := &p.Summary[i]
		if d.Served == d.Asked {
			continue
		}
		asked := []raydemand.Bundle{d.Resources}
		if d.Gang != nil {
			asked = d.Gang.Bundles
		}
		for _, bundle := range asked {
			if bundle[resource] > 0 {
				return true
			}
		}
	}
	return false
}
