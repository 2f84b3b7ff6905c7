package controller

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// noteNamed remembers the pods that went by name because no living node was in them.
func (r *record) noteNamed(removals []removal) {
	for _, gone := range removals {
		if gone.reason != removedOverdue {
			if r.named == nil {
				r.named = map[string]bool{}
			}
			r.named[gone.pod] = true
		}
	}
}

// withReturned marks the named pods that live again: an operator held up by an earlier group deletes them late, and
// meanwhile a restarted container, or a pod that joined at last, gets work. A living pod that somebody else named is
// left to go: only one that we named without a node, or that shows a dead node beside the living one, has returned. One that we
// named before its container ran has returned as soon as that runs, seconds before Ray can give it work.
func (r *record) withReturned(v view, config Config) nodepool.Cluster {
	cluster := v.cluster
	returned := map[string]bool{}
	exists := map[string]bool{}
	for _, m := range v.members {
		exists[m.Pod] = true
		switch {
		case !m.Named || m.Terminating || m.Failed:
		case m.joined():
			leaves := m.Node.Status == raydemand.Draining || r.drains.leaving(m.Node.ID)
			returned[m.Pod] = !leaves && (r.named[m.Pod] || diedBefore(v.state.Nodes, m.Pod))
		case v.live() && m.Node == nil && joining(m, v.now, config):
			returned[m.Pod] = r.named[m.Pod] && !r.drains.acceptedPod(m.Pod)
		}
	}
	for pod := range r.named {
		if !exists[pod] {
			delete(r.named, pod)
		}
	}
	if len(returned) > 0 {
		cluster.Workers = slices.Clone(cluster.Workers)
		for i := range cluster.Workers {
			cluster.Workers[i].Returned = returned[cluster.Workers[i].Pod]
		}
	}
	return cluster
}

func diedBefore(nodes []raydemand.Node, pod string) bool {
	return slices.ContainsFunc(nodes, func(n raydemand.Node) bool { return n.Instance == pod && n.Status == raydemand.Dead })
}
