package observe

import (
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

// Arrivals returns where the starting workers of a RayCluster are, by UID. Only pods that replicas counts start; one
// whose Ray node died counts as one that has joined: it does not start, it restarts.
func Arrivals(cluster nodepool.Cluster, members []Member) map[string]*arrival.State {
	pods := make(map[string][]arrival.Pod, len(cluster.Groups))
	for _, m := range members {
		if m.Counted() && !m.Goes() {
			pods[m.Group] = append(pods[m.Group], arrival.Pod{
				UID: m.UID, CreatedAt: m.CreatedAt, ScheduledAt: m.ScheduledAt, StartedAt: m.StartedAt,
				Gated: m.Gated, Placed: Placed(m), Running: m.Running, Joined: m.Node != nil, Waits: m.Waits,
				PromisedAt: m.PromisedAt, Refused: m.NodeRefused,
			})
		}
	}
	all := map[string]*arrival.State{}
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		var machines []arrival.Machines
		for _, c := range g.Incoming.Places {
			machines = append(machines, arrival.Machines{
				Pods: c.Pods, Stage: stageOf[c.Progress], Since: c.Since, Lacks: c.Lacks,
			})
		}
		for i, state := range arrival.States(pods[g.Name], machines) {
			if state != nil {
				all[pods[g.Name][i].UID] = state
			}
		}
	}
	return all
}
