package observe

import (
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// GoalPods returns how many pods the operator keeps for the group: replicas within its bounds, times hosts.
func GoalPods(group nodepool.WorkerGroup) int {
	return group.Goal() * max(1, group.NumOfHosts)
}

// Deletable reports whether the operator would delete the pod if workersToDelete named it. If not, its node is not
// drained either. In a multi-host group the operator ignores a pod without a replica label, such as one from before
// numOfHosts was raised.
func Deletable(cluster nodepool.Cluster, w *nodepool.Worker) bool {
	g, known := cluster.Group(w.Group)
	return known && Reconciled(cluster, w.Group) && (g.NumOfHosts <= 1 || w.Replica != "")
}

// Reconciled reports whether the operator reconciles the group: creates its missing pods, deletes its named ones.
func Reconciled(cluster nodepool.Cluster, group string) bool {
	g, known := cluster.Group(group)
	return known && !g.Broken && !g.Suspended && !cluster.Refused
}

// AboveMaximum reports whether more pods of the group exist than its maximum allows.
func AboveMaximum(cluster nodepool.Cluster, members []Member, group string) bool {
	g, known := cluster.Group(group)
	if !known {
		return false
	}
	pods := 0
	for _, m := range members {
		if m.Group == group && m.Counted() {
			pods++
		}
	}
	return pods > g.Max*max(1, g.NumOfHosts)
}

func IdleTimeout(cluster nodepool.Cluster, group string) time.Duration {
	if g, known := cluster.Group(group); known && g.IdleTimeout != nil {
		return *g.IdleTimeout
	}
	return cluster.IdleTimeout
}
