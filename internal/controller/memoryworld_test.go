package controller

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// settings bound nothing but what a test sets.
func settings() *Config {
	return &Config{DrainTimeout: time.Minute, DrainDeadline: time.Minute,
		nodeTimes: &arrival.Pools{}}
}

// viewOf is a managed RayCluster with a head and so many idle workers of one group.
func viewOf(workers int) observe.View {
	one := raydemand.Bundle{raydemand.GPU: raydemand.One}
	v := observe.View{Now: start, ReadAt: start, Mode: nodepool.Managed, Cluster: nodepool.Cluster{
		Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, UID: "uid-1", Generation: 1, ObservedGeneration: 1,
		Groups: []nodepool.WorkerGroup{{Name: "gpu", NumOfHosts: 1, Replicas: workers, Max: 9, Resources: one}},
	}}
	v.State = raydemand.State{Session: "session-1", Nodes: []raydemand.Node{{ID: raydemand.NodeID{255},
		Instance: "head", Head: true, Status: raydemand.Idle}}}
	for i := range workers {
		pod := fmt.Sprintf("worker-%d", i)
		v.Cluster.Workers = append(v.Cluster.Workers, nodepool.Worker{Pod: pod, UID: pod, Group: "gpu", Running: true})
		v.State.Nodes = append(v.State.Nodes, raydemand.Node{ID: raydemand.NodeID{byte(i)}, Instance: pod, Group: "gpu",
			Status: raydemand.Idle, Total: one, Available: one})
	}
	joined(&v)
	return v
}

// joined completes the view after its cluster or its nodes have changed.
func joined(v *observe.View) {
	v.Members, v.Head = observe.Join(v.Cluster, v.State.Nodes), observe.LivingHead(v.State.Nodes)
}

// later is the same view after a while.
func later(v observe.View, d time.Duration) observe.View {
	v.Now, v.ReadAt = v.Now.Add(d), v.ReadAt.Add(d)
	return v
}

// planned computes plans at once.
func planned(s *planner.Snapshot) (planner.Plan, error) { return planner.Compute(*s, s.Policy), nil }

// requests are for so many GPUs, one each.
func requests(count int64) []raydemand.Request {
	return []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: count}}
}
