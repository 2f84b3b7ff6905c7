package scaledown

import (
	"heliostat.dev/heliostat/internal/controller/observe"
)

// OperatorBehind returns why the operator has not yet carried out what the RayCluster says, or "". Until then no
// further node is drained: if the operator never deletes its pod, the node stays drained for ever.
//
// The operator writes observedGeneration only together with another change of the status (v1.6.2, consistency.go), so
// a generation that it has not observed counts only while pods are missing.
func OperatorBehind(v observe.View, generation int64) string {
	counted := 0
	for _, m := range v.Members {
		if m.Named && !m.Terminating && !m.Failed {
			return "the operator has not yet deleted " + m.Pod + ", which workersToDelete names"
		}
		if m.Counted() {
			counted++
		}
	}
	goal := 0
	for _, g := range v.Cluster.Groups {
		goal += observe.GoalPods(g)
	}
	if v.Cluster.ObservedGeneration < generation && counted < goal {
		return "the operator has not observed the last patch yet"
	}
	return ""
}
