package observe

import (
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

func nodeID(pod string) raydemand.NodeID {
	var id raydemand.NodeID
	copy(id[:], pod)
	return id
}

func gpu(n int64) raydemand.Bundle { return raydemand.Bundle{raydemand.GPU: raydemand.Whole(n)} }

// gpuGroup has one GPU per worker.
func gpuGroup(name string, replicas, least, most int) nodepool.WorkerGroup {
	return nodepool.WorkerGroup{Name: name, Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(4), raydemand.GPU: raydemand.One},
		Replicas: replicas, Min: least, Max: most}
}

func states(s planner.Snapshot) map[string]string {
	got := map[string]string{}
	for _, n := range s.Nodes {
		got[n.Pod] = string(n.State)
		if n.Expected {
			got[n.Pod] += " expected"
		}
	}
	return got
}

func idleNode(id raydemand.NodeID, head bool, idle time.Duration) raydemand.Node {
	if idle < 0 {
		return raydemand.Node{ID: id, Head: head, Status: raydemand.Running}
	}
	return raydemand.Node{ID: id, Head: head, Status: raydemand.Idle, Idle: idle}
}

func tenths(n int64) raydemand.Amount { return raydemand.Amount(n) * raydemand.One / 10 }
