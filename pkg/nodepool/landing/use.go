package landing

import "heliostat.dev/heliostat/pkg/nodepool/sharing"

// Use is what the pods that are bound to a node take of it. Pods that have ended take nothing.
type Use struct {
	// Requests is the sum of their requests, with the number of pods under "pods".
	Requests Quantities
	// Cards is what the pods leave free on each card; nil if single cards are unknown.
	Cards []sharing.Card
	// Unrecorded names a pod that uses part of a card of which no annotation says which it is; nil if there is none.
	Unrecorded *sharing.Problem
	// Pods is what terms of other pods see of the pods: their namespaces, their labels, and their own anti-affinity.
	Pods []*Neighbors
}
