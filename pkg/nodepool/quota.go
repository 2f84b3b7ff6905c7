package nodepool

import "heliostat.dev/heliostat/pkg/raydemand"

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
	Bounds    []QuotaBound
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

// QuotaBound is what the pods of some groups may have together of one resource.
type QuotaBound struct {
	// Name names it, for example "flavor spot of ClusterQueue research".
	Name, Resource string
	// Amount is what all pods of the groups may have together, including those that exist.
	Amount raydemand.Amount
	// PodTakes is what one pod takes, by group.
	PodTakes map[string]raydemand.Amount
	// Why says more, for example Kueue's message; may be empty.
	Why string
}

// Room returns how many more pods of a group fit, with the given numbers of pods of all groups.
func (b *QuotaBound) Room(group string, pods map[string]int) int {
	takes := b.PodTakes[group]
	if takes <= 0 {
		return NoMaximum
	}
	left := b.Amount
	for other, takes := range b.PodTakes {
		left -= takes * raydemand.Amount(pods[other])
	}
	return int(max(left, 0) / takes)
}
