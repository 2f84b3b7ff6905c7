package observe

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// stageOf is the stage of a pod for which a NodeClaim has room.
var stageOf = map[landing.Progress]arrival.Stage{
	landing.Requested:  arrival.NodeRequested,
	landing.Launched:   arrival.NodeLaunched,
	landing.Registered: arrival.NodeRegistered,
	landing.NodeReady:  arrival.NodeReady,
}

// arrivals returns where the starting workers of a RayCluster are, by UID. Only pods that replicas counts start; one
// whose Ray node died does not start, it restarts. Machines on their way, furthest first, count for the pods that wait
// longest, because the scheduler tries these first; pods and machines are not tied
// (docs/reference/facts.md#karpenter-nodeclaims).
func arrivals(cluster nodepool.Cluster, members []Member) map[string]*arrival.State {
	all, unplaced := map[string]*arrival.State{}, map[string][]Member{}
	for _, m := range members {
		switch {
		case m.Node != nil || !m.Counted() || m.Goes():
		case !Placed(m) && !m.Gated:
			unplaced[m.Group] = append(unplaced[m.Group], m)
		default:
			all[m.UID] = withoutMachine(m)
		}
	}
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		waiting := unplaced[g.Name]
		slices.SortStableFunc(waiting, func(a, b Member) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.UID, b.UID))
		})
		for _, c := range g.Incoming.Places {
			for n := min(c.Pods, len(waiting)); n > 0; n-- {
				all[waiting[0].UID] = &arrival.State{Stage: stageOf[c.Progress], Since: c.Since, Message: c.Lacks}
				waiting = waiting[1:]
			}
		}
		for _, m := range waiting {
			all[m.UID] = withoutMachine(m)
		}
	}
	return all
}

// withoutMachine returns the state of a pod that has a node, or for which no machine is known. What a node autoscaler
// reports about the latter is all there is.
func withoutMachine(m Member) *arrival.State {
	switch {
	case m.Gated:
		return &arrival.State{Stage: arrival.Gated, Since: m.CreatedAt}
	case m.Running:
		return &arrival.State{Stage: arrival.JoiningRay, Since: m.StartedAt}
	case m.Waits == "ContainerCreating", m.Waits == "PodInitializing":
		return &arrival.State{Stage: arrival.Starting, Since: m.ScheduledAt}
	case m.Waits != "":
		return &arrival.State{Stage: arrival.Starting, Since: m.ScheduledAt, Message: m.Waits}
	case Placed(m):
		return &arrival.State{Stage: arrival.Bound, Since: m.ScheduledAt}
	case !m.PromisedAt.IsZero():
		return &arrival.State{Stage: arrival.NodeRequested, Since: m.PromisedAt}
	}
	return &arrival.State{Stage: arrival.WaitsForNode, Since: m.CreatedAt, Message: m.NodeRefused}
}
