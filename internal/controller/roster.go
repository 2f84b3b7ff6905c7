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

// roster joins the worker pods of known groups with Ray's nodes, sorted by name. Ray nodes without a pod and pods without
// a group are left out: nothing may be decided about them.
func roster(cluster nodepool.Cluster, nodes []raydemand.Node) []member {
	byPod, _ := nodesByPod(cluster.Workers, nodes)
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

// nodesByPod finds each pod's node by instance id, which KubeRay sets to the pod's name, and prefers the living node where
// a container restart left a dead one under the same name. A template may set another id: such a node is found by its
// address while it lives; never once dead, since addresses are used again. Strangers are living nodes found in no pod.
func nodesByPod(workers []nodepool.Worker, nodes []raydemand.Node) (byPod map[string]*raydemand.Node, strangers []*raydemand.Node) {
	pods, podAt := podsByIP(workers)
	byPod = make(map[string]*raydemand.Node, len(nodes))
	var others []*raydemand.Node
	for i := range nodes {
		n := &nodes[i]
		switch known := byPod[n.Instance]; {
		case n.Head:
		case !pods[n.Instance]:
			others = append(others, n)
		case known == nil || known.Status == raydemand.Dead:
			byPod[n.Instance] = n
		}
	}
	for _, n := range others {
		pod := podAt[n.IP]
		switch known := byPod[pod]; {
		case n.Status == raydemand.Dead:
		case pod != "" && (known == nil || known.Status == raydemand.Dead):
			byPod[pod] = n
		default:
			strangers = append(strangers, n)
		}
	}
	return byPod, strangers
}

// podsByIP returns the names of all pods, and the pod at each address; pods on the host's network can share theirs, and
// then it tells nothing.
func podsByIP(workers []nodepool.Worker) (pods map[string]bool, at map[string]string) {
	pods, at = make(map[string]bool, len(workers)), make(map[string]string, len(workers))
	shared := map[string]bool{"": true}
	for _, w := range workers {
		pods[w.Pod] = true
		if w.Failed {
			continue // its address may be another's by now
		}
		_, taken := at[w.IP]
		shared[w.IP] = shared[w.IP] || taken
		at[w.IP] = w.Pod
	}
	for ip, is := range shared {
		if is {
			delete(at, ip)
		}
	}
	return pods, at
}

// strangers are the living worker nodes that no pod is known to hold. Any pod without a node may hold one of them.
func strangers(cluster nodepool.Cluster, nodes []raydemand.Node) []*raydemand.Node {
	_, found := nodesByPod(cluster.Workers, nodes)
	return found
}

// goalPods is how many pods the operator keeps for the group: replicas within its bounds, times hosts.
func goalPods(group nodepool.WorkerGroup) int {
	return group.Goal() * max(1, group.NumOfHosts)
}
