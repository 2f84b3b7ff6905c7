package nodes

import (
	"maps"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// claimantOf returns what a cluster's pods need of future nodes: by group the pods that wait for a node, and what pods
// take that are bound to incomplete nodes.
func claimantOf(cluster *nodepool.Cluster, incomplete map[string]bool) claimant {
	own := claimant{waiting: map[string]landing.WaitingPods{}, bound: map[string]landing.Quantities{}}
	for i := range cluster.Workers {
		w := &cluster.Workers[i]
		group, known := cluster.Group(w.Group)
		switch {
		case !known || w.Terminating || w.Failed || w.Gated:
		case w.Node == "":
			own.wait(group, w)
		case incomplete[w.Node]:
			takes := own.bound[w.Node].Plus(group.Pod.Requests)
			own.bound[w.Node] = takes.Plus(landing.Quantities{"pods": raydemand.One})
		}
	}
	return own
}

func (c claimant) wait(group *nodepool.WorkerGroup, w *nodepool.Worker) {
	pods, begun := c.waiting[group.Name]
	if !begun {
		shape := group.Pod
		pods = landing.WaitingPods{Shape: &shape, Since: w.CreatedAt}
	}
	pods.Pods++
	if w.CreatedAt.Before(pods.Since) {
		pods.Since = w.CreatedAt
	}
	c.waiting[group.Name] = pods
}

// equal reports whether both place the same pods. A changed template comes with other pods.
func (c claimant) equal(other claimant) bool {
	same := func(a, b landing.WaitingPods) bool { return a.Pods == b.Pods && a.Since.Equal(b.Since) }
	return maps.EqualFunc(c.waiting, other.waiting, same) &&
		maps.EqualFunc(c.bound, other.bound, func(a, b landing.Quantities) bool { return maps.Equal(a, b) })
}
