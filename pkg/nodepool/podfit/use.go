package podfit

import "heliostat.dev/heliostat/pkg/nodepool/nodegpu"

// PodOnNode is a pod that is bound to a node. RayCluster and Group name its worker group; both are empty for other
// pods. It is immutable.
type PodOnNode struct {
	*Neighbors
	RayCluster, Group string
}

// Use is what the pods that are bound to a node take of it. Pods that have ended take nothing.
type Use struct {
	// Requests is the sum of their requests, with the number of pods under "pods".
	Requests Quantities
	// Pods are these pods, in no order, as far as other pods may or may not run beside them.
	Pods []PodOnNode
	// Cards is what the pods leave free on each card; nil if single cards are unknown.
	Cards []nodegpu.Card
}
