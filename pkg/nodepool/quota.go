package nodepool

import "heliostat.dev/heliostat/pkg/nodepool/landing"

// Quota is what Kueue says about the quota of a RayCluster: its Workloads, and the ClusterQueue that admitted it. The
// zero value is a RayCluster of which nothing is known.
type Quota struct {
	// Unread says why the Workloads are unknown; empty if they are known.
	Unread string
	// Elastic says that an unfinished Workload of the RayCluster is elastic, so that Kueue takes a change of replicas
	// as a new slice of it. It is false while there is none.
	Elastic bool
	// Admitted says that a Workload has quota. Granted is then how many pods of each group it has quota for.
	Admitted bool
	Granted  map[string]int
	// Pending is the Workload that waits for quota; nil if none does.
	Pending *PendingWorkload
	// Bounds are what the pods of groups may have together. Unbounded says why the headroom is unknown; empty if it is
	// known.
	Bounds    []landing.Quota
	Unbounded string
}

// Present reports whether the RayCluster has an unfinished Workload.
func (q *Quota) Present() bool { return q.Admitted || q.Pending != nil }

// PendingWorkload is a Workload without quota.
type PendingWorkload struct {
	Name string
	// Version distinguishes what is requested: it changes with the number of pods.
	Version string
	// Pods are the pods that it requests, by group.
	Pods map[string]int
	// Message is Kueue's reason; empty while Kueue has not looked at the Workload. Judged says that it is about this
	// Version.
	Message string
	Judged  bool
	// Preempting says that Kueue evicts other work for it.
	Preempting bool
}
