package controller

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// member is one worker pod together with what Ray says of it.
type member struct {
	nodepool.Worker
	// Node is the pod's Ray node: the living one, else a dead one, else nil when Ray never saw it.
	Node *raydemand.Node
	// Named: the pod stands in workersToDelete, so it is the operator's to delete.
	Named bool
}

// joined reports whether a living Ray node runs in the pod.
func (m member) joined() bool { return m.Node != nil && m.Node.Status != raydemand.Dead }

// dead reports whether the pod's Ray node has died and none has come up since.
func (m member) dead() bool { return m.Node != nil && m.Node.Status == raydemand.Dead }

// counted reports whether replicas still counts the pod: a named or terminating one was taken out or will be replaced.
func (m member) counted() bool { return !m.Named && !m.Terminating && !m.Failed }

// roster joins the worker pods of known groups with Ray's nodes by pod name, sorted by name. Ray nodes without a pod
// and pods without a group are left out: nothing may be decided about them.
func roster(cluster nodepool.Cluster, nodes []raydemand.Node) []member {
	byPod := nodesByPod(nodes)
	members := make([]member, 0, len(cluster.Workers))
	for _, worker := range cluster.Workers {
		group, known := cluster.Group(worker.Group)
		if !known {
			continue
		}
		members = append(members, member{
			Worker: worker,
			Node:   byPod[worker.Pod],
			Named:  slices.Contains(group.WorkersToDelete, worker.Pod),
		})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.Pod, b.Pod) })
	return members
}

// nodesByPod prefers the living node where a container restart left a dead one under the same name.
func nodesByPod(nodes []raydemand.Node) map[string]*raydemand.Node {
	byPod := make(map[string]*raydemand.Node, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if n.Head || n.Instance == "" {
			continue
		}
		if known := byPod[n.Instance]; known == nil || known.Status == raydemand.Dead {
			byPod[n.Instance] = n
		}
	}
	return byPod
}

// goalPods is how many pods the operator keeps for the group: replicas within its bounds, times hosts.
func goalPods(group nodepool.WorkerGroup) int {
	return goalReplicas(group) * max(1, group.NumOfHosts)
}

// goalReplicas is the operator's clamp(replicas, min, max).
func goalReplicas(group nodepool.WorkerGroup) int {
	return max(group.Min, min(group.Replicas, group.Max))
}
