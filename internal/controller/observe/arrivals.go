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

// Starting returns the worker groups with the pods that replicas counts, and with the machines on their way for them. A
// pod whose Ray node died counts as one that has joined: it does not start, it restarts.
func Starting(cluster nodepool.Cluster, members []Member) []arrival.Group {
	groups := make([]arrival.Group, len(cluster.Groups))
	index := make(map[string]int, len(cluster.Groups))
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		index[g.Name], groups[i].Name = i, g.Name
		for _, pool := range g.PoolPods {
			groups[i].Pools = append(groups[i].Pools, pool.Pool)
		}
		for _, c := range g.Incoming.Places {
			groups[i].Machines = append(groups[i].Machines, arrival.Machines{
				Pods: c.Pods, Stage: stageOf[c.Progress], AskedAt: c.AskedAt, Since: c.Since, Lacks: c.Lacks,
			})
		}
	}
	pods := make([]int, len(groups))
	for _, m := range members {
		if at, known := index[m.Group]; known {
			pods[at]++
		}
	}
	for _, m := range members {
		if at, known := index[m.Group]; known && m.Counted() && !m.Goes() {
			if groups[at].Pods == nil {
				groups[at].Pods = make([]arrival.Pod, 0, pods[at])
			}
			groups[at].Pods = append(groups[at].Pods, startingPod(m))
		}
	}
	return groups
}

func startingPod(m Member) arrival.Pod {
	return arrival.Pod{
		UID: m.UID, Pool: m.Pool,
		CreatedAt: m.CreatedAt, ScheduledAt: m.ScheduledAt, StartedAt: m.StartedAt, ReadyAt: m.ReadyAt,
		Gated: m.Gated, Placed: Placed(m), Running: m.Running, Joined: m.Node != nil, Waits: m.Waits,
		PromisedAt: m.PromisedAt, Refused: m.NodeRefused,
	}
}

// Arrivals returns where the starting workers of groups are, by UID, if workers take these times.
func Arrivals(groups []arrival.Group, times func(arrival.Group) arrival.Times) map[string]*arrival.State {
	all := map[string]*arrival.State{}
	for _, g := range groups {
		for i, state := range g.States(times(g)) {
			if state != nil {
				all[g.Pods[i].UID] = state
			}
		}
	}
	return all
}
