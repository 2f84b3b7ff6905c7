package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// SnapshotInput is everything that a snapshot is made of. Assemble remembers nothing and calls nothing, so snapshots
// can be tested like arithmetic.
type SnapshotInput struct {
	Now     time.Time
	Cluster nodepool.Cluster
	Members []Member
	Head    *raydemand.Node
	Demand  raydemand.Demand
	// PlainRequests are the REST request_resources; nil, like the demand, while Ray does not answer.
	PlainRequests []raydemand.Request
	// OwnedRequests are the ResourceRequests that count; nil while Ray does not answer.
	OwnedRequests []raydemand.Owned
	// Idle is how long each idle node has been unused.
	Idle map[raydemand.NodeID]time.Duration
	// Leaving are the nodes that were asked to drain and may not show it yet.
	Leaving map[raydemand.NodeID]bool
	// Unplaceable is what has waited on a node although as much is free there in total; most nodes have nothing.
	Unplaceable map[raydemand.NodeID]raydemand.Bundle
	// Crashed are the pods whose Ray node died and whose grace period is over.
	Crashed  map[string]bool
	Breakers Breakers
	// NodeComing are the pods for which a node is on its way.
	NodeComing map[string]bool
	// Since is since when a group has requested pods that do not exist yet.
	Since  map[string]time.Time
	Shapes Shapes
	// Quotas bound groups beside those that the cluster has. TakenBack reports whether a pod waits for quota in vain;
	// nil if none does.
	Quotas    []landing.Quota
	TakenBack func(pod string) bool
	// Warm is what a capacity policy wants free; nil if nothing.
	Warm *planner.Warm
	// DemandUnknown says why the demand is unknown, or is empty; Members are then as of Ray's last answer.
	DemandUnknown string
}

// maxExpected bounds the expected nodes in the snapshot of one RayCluster, since users may write any replicas. The
// planner counts the rest as missing pods, so no demand is served twice.
const maxExpected = 4096

// Assemble returns the snapshot. Capacity on its way counts as expected: every pod that replicas asks for and that
// does not exist yet is in it as an expected node, so no demand is served twice while pods start. A decision uses
// nothing else, so it can be exported and replayed.
func Assemble(s SnapshotInput) planner.Snapshot {
	snapshot := planner.SnapshotOf(s.Cluster)
	snapshot.TakenAt, snapshot.Head, snapshot.Demand = s.Now, headNode(s), s.Demand
	snapshot.KeptResources, snapshot.OwnedRequests, snapshot.Warm = s.PlainRequests, s.OwnedRequests, s.Warm
	snapshot.Quotas = append(snapshot.Quotas, s.Quotas...)
	snapshot.Nodes = make([]planner.Node, 0, len(s.Members))
	room, starting := maxExpected, arrivals(s.Cluster, s.Members)
	for i := range snapshot.Groups {
		group := &snapshot.Groups[i]
		known, _ := s.Cluster.Group(group.Name)
		g := *known
		s.complete(group, g)
		snapshot.Nodes = s.appendNodes(snapshot.Nodes, g, group, starting)
		if Reconciled(s.Cluster, g.Name) {
			expected := s.expected(g, group, room)
			room -= len(expected)
			snapshot.Nodes = append(snapshot.Nodes, expected...)
		}
	}
	slices.SortFunc(snapshot.Nodes, func(a, b planner.Node) int { return strings.Compare(a.Pod, b.Pod) })
	snapshot.LearnLabels()
	return snapshotfile.Exportable(snapshot)
}

func headNode(s SnapshotInput) *planner.Node {
	if s.Head == nil {
		return nil
	}
	return &planner.Node{
		Pod:          s.Cluster.Head.Pod,
		Group:        s.Head.Group,
		State:        planner.Running,
		Total:        s.Head.Total,
		Available:    s.Head.Available,
		Labels:       s.Head.Labels,
		PlacedLabels: s.Head.PlacedLabels,
		Refused:      s.Unplaceable[s.Head.ID],
		KubeNode:     s.Cluster.Head.Node,
		Guard:        s.Cluster.Head.Guard.By(),
	}
}

// complete adds what the RayCluster does not say of a group: what its nodes show, and why it takes no launches.
func (s SnapshotInput) complete(group *planner.Group, g nodepool.WorkerGroup) {
	group.Announces = s.Shapes.Announced(g.Name, g.Announces)
	group.Resources = withoutType(s.Shapes.Of(g), group.Announces)
	group.NodesComing = s.nodesComing(g)
	group.Slice = planner.SliceOf(g, group.Resources[raydemand.GPU])
	if group.Closed == "" && s.Cluster.Refused {
		group.Closed = "the operator rejects the RayCluster's spec; see findings"
	}
	s.Breakers.Rank(group, s.Now)
	if group.Closed == "" {
		group.Closed = s.DemandUnknown
	}
}

// nodesComing returns how many of the group's pods without a node wait for one that Karpenter has launched.
func (s SnapshotInput) nodesComing(g nodepool.WorkerGroup) int {
	waiting := 0
	for _, m := range s.Members {
		if m.Group == g.Name && m.Counted() && m.Node == nil && !Placed(m) {
			waiting++
		}
	}
	return min(waiting, g.Incoming.Launched)
}

// appendNodes appends the group's pods that exist. A failed one is left out: the operator replaces it, so it is
// expected.
func (s SnapshotInput) appendNodes(
	nodes []planner.Node, g nodepool.WorkerGroup, group *planner.Group, starting map[string]*arrival.State,
) []planner.Node {
	reconciled := Reconciled(s.Cluster, g.Name)
	for _, m := range s.Members {
		if m.Group != g.Name || (m.Failed && !m.Named && !m.Terminating) {
			continue
		}
		node := planner.Node{Pod: m.Pod, Group: m.Group, State: s.state(m), Replica: m.Replica,
			KubeNode: m.Worker.Node, Guard: m.Guard.By()}
		if !m.Named && reconciled {
			node.Going = m.Going
		}
		if m.Joined() {
			node.Total, node.Available = m.Node.Total, m.Node.Available
			node.Labels, node.PlacedLabels = m.Node.Labels, m.Node.PlacedLabels
			node.Refused = s.Unplaceable[m.Node.ID]
			if m.Node.Status != raydemand.Idle { // on an idle node it is stale
				node.Activity = m.Node.Activity
			}
		} else {
			node.Total, node.Available = group.Resources, group.Resources
			node.Labels = group.Labels
			node.Since = m.CreatedAt
			if node.State != planner.Leaving {
				node.Arrival = starting[m.UID]
			}
		}
		if node.State == planner.Idle {
			node.IdleSeconds = s.Idle[m.Node.ID].Seconds()
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// state returns what the planner may expect of a pod.
func (s SnapshotInput) state(m Member) planner.NodeState {
	switch {
	case m.Terminating || m.Named || m.NodeGone || m.Goes():
		return planner.Leaving
	case m.Joined() && (m.Node.Status == raydemand.Draining || s.Leaving[m.Node.ID]):
		return planner.Leaving
	case s.DemandUnknown != "" && (m.Joined() || m.Ready): // whether it is idle is as unknown as the demand
		return planner.Running
	case m.Joined() && m.Node.Status == raydemand.Idle:
		return planner.Idle
	case m.Joined():
		return planner.Running
	case m.Dead() && (s.Leaving[m.Node.ID] || s.Crashed[m.Pod]):
		return planner.Leaving
	case m.Gated && s.TakenBack != nil && s.TakenBack(m.Pod):
		return planner.AllocationTimeout
	case s.Breakers.NothingExpected(m.Group, Placed(m) || s.NodeComing[m.Pod], s.Now):
		return planner.AllocationTimeout
	}
	// Within the grace period the container may restart, or the operator replaces the pod.
	return planner.Pending
}

// expected returns the pods that the group's goal asks for beyond those that exist, at most room of them. Pods that the
// operator would replace once they are gone count as existing: the planner decides whether they are replaced, and if
// so the loop names them, so that the replacement does not wait for their end.
func (s SnapshotInput) expected(g nodepool.WorkerGroup, group *planner.Group, room int) []planner.Node {
	if len(g.ScaleGates) > 0 {
		return nil // the operator creates none before the gate is gone, so other groups serve what waits
	}
	missing := GoalPods(g)
	hosts := map[string]int{}
	for _, m := range s.Members {
		if m.Group == g.Name && m.Counted() {
			missing--
			hosts[m.Replica]++
		} else if m.Group == g.Name && m.Replaced() {
			missing--
		}
	}
	state := planner.Pending
	if s.Breakers.NothingExpected(g.Name, false, s.Now) {
		state = planner.AllocationTimeout
	}
	var requested *arrival.State
	if state == planner.Pending {
		requested = &arrival.State{Stage: arrival.Requested, Since: s.Since[g.Name]}
	}
	missing = max(0, min(missing, room))
	replicas := replicaNames(g, hosts, missing)
	nodes := make([]planner.Node, 0, missing)
	for i := range missing {
		nodes = append(nodes, planner.Node{
			Pod:       fmt.Sprintf("%s-expected-%d", g.Name, i),
			Group:     g.Name,
			State:     state,
			Total:     group.Resources,
			Available: group.Resources,
			Labels:    group.Labels,
			Replica:   replicas[i],
			Expected:  true,
			Since:     s.Since[g.Name],
			Arrival:   requested,
		})
	}
	return nodes
}

// replicaNames returns the multi-host replica of each missing pod: incomplete replicas are filled first.
func replicaNames(g nodepool.WorkerGroup, hosts map[string]int, missing int) []string {
	names := make([]string, missing)
	if g.NumOfHosts <= 1 {
		return names
	}
	next := 0
	fill := func(replica string, count int) {
		for ; count > 0 && next < len(names); count-- {
			names[next] = replica
			next++
		}
	}
	for _, replica := range slices.Sorted(maps.Keys(hosts)) {
		if replica != "" {
			fill(replica, g.NumOfHosts-hosts[replica])
		}
	}
	for i := 0; next < len(names); i++ {
		fill(fmt.Sprintf("%s-expected-replica-%d", g.Name, i), g.NumOfHosts)
	}
	return names
}
