package observe

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Member is one worker pod together with its Ray node.
type Member struct {
	// Worker is the pod, shared with the cluster that it was read with.
	*nodepool.Worker
	// Node is the pod's Ray node: the living one, else a dead one, else nil if Ray never saw it.
	Node *raydemand.Node
	// Named: workersToDelete names the pod, so the operator deletes it.
	Named bool
}

// Joined reports whether a living Ray node runs in the pod.
func (m Member) Joined() bool { return m.Node != nil && m.Node.Status != raydemand.Dead }

// Dead reports whether the pod's Ray node has died and no other has come up since.
func (m Member) Dead() bool { return m.Node != nil && m.Node.Status == raydemand.Dead }

// Counted reports whether replicas still counts the pod: the operator replaces a failed or terminating one, and
// replicas no longer counts a named one.
func (m Member) Counted() bool { return !m.Named && !m.Terminating && !m.Failed }

// Replaced reports whether the operator replaces the pod as soon as it is gone, without a change of the spec: somebody
// else ends it, and replicas still asks for it (docs/reference/facts.md#ending-pods). A host of a multi-host replica
// is left out, because the operator deletes and creates replicas whole.
func (m Member) Replaced() bool { return m.Terminating && !m.Named && !m.Failed && m.Replica == "" }

// Goes reports whether the pod's machine, or the pod by somebody else's decision, certainly ends soon.
func (m Member) Goes() bool { return m.Going != nil && m.Going.Certain && !m.Named && !m.Failed }

// Join joins the worker pods of known groups with Ray's nodes, sorted by name. Ray nodes without a pod and pods
// without a group are left out: nothing may be decided about them.
func Join(cluster nodepool.Cluster, nodes []raydemand.Node) []Member {
	members, _ := join(cluster.Workers, nodes)
	known := members[:0]
	for _, m := range members {
		if group, exists := cluster.Group(m.Group); exists {
			m.Named = slices.Contains(group.WorkersToDelete, m.Pod)
			known = append(known, m)
		}
	}
	return known
}

// join finds each pod's node by instance id, which KubeRay sets to the pod's name. It prefers the living node if a
// container restart left a dead one with the same name. A template may set another id: such a node is found by its
// address while it lives, but not once it is dead, since addresses are reused. Members are sorted by name. Orphans are
// living nodes without a pod.
func join(workers []nodepool.Worker, nodes []raydemand.Node) (members []Member, orphans []*raydemand.Node) {
	members = make([]Member, len(workers))
	for i := range workers {
		members[i].Worker = &workers[i]
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Pod, b.Pod) })
	var others []*raydemand.Node
	for i := range nodes {
		n := &nodes[i]
		if n.Head {
			continue
		}
		m := memberOf(members, n.Instance)
		switch {
		case m == nil:
			others = append(others, n)
		case !m.Joined():
			m.Node = n
		}
	}
	if len(others) == 0 {
		return members, nil
	}
	podAt := podsByIP(workers)
	for _, n := range others {
		m := memberOf(members, podAt[n.IP])
		switch {
		case n.Status == raydemand.Dead:
		case m != nil && !m.Joined():
			m.Node = n
		default:
			orphans = append(orphans, n)
		}
	}
	return members, orphans
}

// memberOf finds a pod among members that are sorted by name; nil if there is none.
func memberOf(members []Member, pod string) *Member {
	at, exists := slices.BinarySearchFunc(members, pod, func(m Member, pod string) int {
		return strings.Compare(m.Pod, pod)
	})
	if !exists {
		return nil
	}
	return &members[at]
}

// podsByIP returns the pod at each address. Pods on the host's network may share an address, which then identifies
// none: its entry is empty.
func podsByIP(workers []nodepool.Worker) map[string]string {
	at := make(map[string]string, len(workers))
	for i := range workers {
		w := &workers[i]
		if w.Failed || w.IP == "" {
			continue // another pod may have its address by now
		}
		if _, taken := at[w.IP]; taken {
			at[w.IP] = ""
		} else {
			at[w.IP] = w.Pod
		}
	}
	return at
}

// Orphans returns the living worker nodes that match no pod. Any pod without a node may hold one of them.
func Orphans(cluster nodepool.Cluster, nodes []raydemand.Node) []*raydemand.Node {
	_, found := join(cluster.Workers, nodes)
	return found
}

// Unplaced reports whether the scheduler finds no node for a pod that replicas counts.
func Unplaced(m Member) bool {
	return m.Counted() && m.Node == nil && m.Unschedulable != "" && !Placed(m)
}

// Placed reports whether a pod has a node.
func Placed(m Member) bool { return m.Worker.Node != "" || !m.ScheduledAt.IsZero() }

// LivingHead returns the head's Ray node; nil if the state has none, because then the state is not complete.
func LivingHead(nodes []raydemand.Node) *raydemand.Node {
	for i := range nodes {
		if nodes[i].Head && nodes[i].Status != raydemand.Dead {
			return &nodes[i]
		}
	}
	return nil
}
