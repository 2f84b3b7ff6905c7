package scaledown

import (
	"maps"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
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

// NamedPods are the pods that this process named in workersToDelete, or tried to, while no living node was in them.
type NamedPods map[string]bool

// Note remembers the pods that are about to be named because no living node is in them.
func (n *NamedPods) Note(removals []Removal) {
	for _, gone := range removals {
		if absent(gone.reason) || gone.reason == removedDrained {
			if *n == nil {
				*n = NamedPods{}
			}
			(*n)[gone.pod] = true
		}
	}
}

// WithReturned marks the named pods that live again. An operator that is delayed by an earlier group deletes them
// late; meanwhile a restarted container, or a pod that joined at last, may get work. A living pod that somebody else
// named is deleted as asked. Only a pod that this process named without a node, or that has a dead node beside the
// living one, has returned. One that was named before its container ran has returned as soon as it runs, seconds
// before Ray can give it work.
func (n NamedPods) WithReturned(v observe.View, drains Drains, allocationTimeout time.Duration) nodepool.Cluster {
	cluster := v.Cluster
	returned := map[string]bool{}
	for _, m := range v.Members {
		switch {
		case !m.Named || m.Terminating || m.Failed:
		case m.Joined():
			leaves := m.Node.Status == raydemand.Draining || drains.Leaving(m.Node.ID)
			returned[m.Pod] = !leaves && (n[m.Pod] || diedBefore(v.State.Nodes, m.Pod))
		case v.Live() && m.Node == nil && joining(m, v.Now, allocationTimeout):
			returned[m.Pod] = n[m.Pod] && !drains.acceptedPod(m.Pod)
		}
	}
	maps.DeleteFunc(n, func(pod string, _ bool) bool {
		return !slices.ContainsFunc(v.Members, func(m observe.Member) bool { return m.Pod == pod })
	})
	if len(returned) > 0 {
		cluster.Workers = slices.Clone(cluster.Workers)
		for i := range cluster.Workers {
			cluster.Workers[i].Returned = returned[cluster.Workers[i].Pod]
		}
	}
	return cluster
}

func diedBefore(nodes []raydemand.Node, pod string) bool {
	return slices.ContainsFunc(nodes,
		func(n raydemand.Node) bool { return n.Instance == pod && n.Status == raydemand.Dead })
}
