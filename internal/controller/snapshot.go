package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// sight is all that a snapshot is made of. assemble keeps nothing and asks nobody, so a snapshot can be tested like
// arithmetic.
type sight struct {
	now     time.Time
	cluster nodepool.Cluster
	members []membership.Member
	head    *raydemand.Node
	demand  raydemand.Demand
	// kept is the REST request_resources; nil, like the demand, while Ray does not answer.
	kept []raydemand.Request
	// owned are the requests of owners that hold; nil while Ray does not answer.
	owned []raydemand.Owned
	// idle is how long a node has had no use.
	idle map[raydemand.NodeID]time.Duration
	// leaving holds nodes that were asked to go and may not show it yet.
	leaving map[raydemand.NodeID]bool
	// refused holds what has waited beside a node although as much is free there in sum.
	refused map[raydemand.NodeID]raydemand.Bundle
	// crashed holds pods whose Ray node died and whose grace is over.
	crashed  map[string]bool
	breakers breakers
	// coming holds pods for which a node is on its way.
	coming map[string]bool
	// since is since when a group has pods that were asked for and do not exist yet.
	since  map[string]time.Time
	shapes shapes
	// blind says why nothing is known of what waits, or is empty; members are then as Ray last said.
	blind string
}

// maxExpected bounds the expected nodes that one RayCluster's snapshot lists, since anybody may write any replicas. The
// planner counts the rest as missing by what replicas says (its settleCurrent), so no demand is served twice.
const maxExpected = 4096

// assemble makes the snapshot. Capacity on its way counts by expectation: every pod that replicas asks for and that is
// not seen yet stands in it as an expected node, so no demand is served twice while pods come up. What is decided on is what
// can be exported, so that any decision can be replayed.
func assemble(s sight) planner.Snapshot {
	snapshot := planner.SnapshotOf(s.cluster)
	snapshot.TakenAt, snapshot.Head, snapshot.Demand = s.now, headNode(s), s.demand
	snapshot.KeptResources, snapshot.OwnedRequests = s.kept, s.owned
	room := maxExpected
	for i := range snapshot.Groups {
		group := &snapshot.Groups[i]
		known, _ := s.cluster.Group(group.Name)
		g := *known
		s.complete(group, g)
		snapshot.Nodes = append(snapshot.Nodes, s.nodes(g, group)...)
		if membership.Reconciled(s.cluster, g.Name) {
			expected := s.expected(g, group, room)
			room -= len(expected)
			snapshot.Nodes = append(snapshot.Nodes, expected...)
		}
	}
	slices.SortFunc(snapshot.Nodes, func(a, b planner.Node) int { return strings.Compare(a.Pod, b.Pod) })
	return snapshotfile.Exportable(snapshot)
}

func headNode(s sight) *planner.Node {
	if s.head == nil {
		return nil
	}
	return &planner.Node{
		Pod:          s.cluster.Head.Pod,
		Group:        s.head.Group,
		State:        planner.Running,
		Total:        s.head.Total,
		Available:    s.head.Available,
		Labels:       s.head.Labels,
		PlacedLabels: s.head.PlacedLabels,
		Refused:      s.refused[s.head.ID],
	}
}

// complete adds what the RayCluster does not say of a group: what its nodes show, and why it takes no launches.
func (s sight) complete(group *planner.Group, g nodepool.WorkerGroup) {
	group.Resources = s.shapes.of(g)
	group.NodesComing = s.nodesComing(g)
	group.Slice = planner.SliceOf(g, group.Resources[raydemand.GPU])
	if group.Closed == "" && s.cluster.Refused {
		group.Closed = "the operator refuses the RayCluster's spec; see findings"
	}
	standing := s.breakers.standing(g.Name, s.now)
	group.RecoverableScore, group.CloudAvailability = standing.score, standing.stock
	if group.Closed == "" && standing.cooling > 0 {
		group.Closed, group.CoolingSeconds = standing.reason, standing.cooling.Seconds()
	}
	if group.Closed == "" {
		group.Closed = s.blind
	}
}

// nodesComing is how many of the group's pods without a node wait for one that Karpenter has launched.
func (s sight) nodesComing(g nodepool.WorkerGroup) int {
	waiting := 0
	for _, m := range s.members {
		if m.Group == g.Name && m.Counted() && m.Node == nil && !membership.Placed(m) {
			waiting++
		}
	}
	return min(waiting, g.Incoming.Launched)
}

// nodes are the group's pods that exist. A failed one is left out: the operator replaces it, so it is expected.
func (s sight) nodes(g nodepool.WorkerGroup, group *planner.Group) []planner.Node {
	var nodes []planner.Node
	for _, m := range s.members {
		if m.Group != g.Name || (m.Failed && !m.Named && !m.Terminating) {
			continue
		}
		node := planner.Node{Pod: m.Pod, Group: m.Group, State: s.state(m), Replica: m.Replica}
		if m.Joined() {
			node.Total, node.Available = m.Node.Total, m.Node.Available
			node.Labels, node.PlacedLabels = m.Node.Labels, m.Node.PlacedLabels
			node.Refused = s.refused[m.Node.ID]
		} else {
			node.Total, node.Available = group.Resources, group.Resources
			node.Labels = group.Labels
			node.Since = m.CreatedAt
		}
		if node.State == planner.Idle {
			node.IdleSeconds = s.idle[m.Node.ID].Seconds()
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// state translates a pod and its Ray node into what the planner may count on.
func (s sight) state(m membership.Member) planner.NodeState {
	switch {
	case m.Terminating || m.Named || m.NodeGone:
		return planner.Leaving
	case m.Joined() && (m.Node.Status == raydemand.Draining || s.leaving[m.Node.ID]):
		return planner.Leaving
	case s.blind != "" && (m.Joined() || m.Ready): // idle or not is as unknown as what waits
		return planner.Running
	case m.Joined() && m.Node.Status == raydemand.Idle:
		return planner.Idle
	case m.Joined():
		return planner.Running
	case m.Dead() && (s.leaving[m.Node.ID] || s.crashed[m.Pod]):
		return planner.Leaving
	case s.breakers.givenUp(m.Group, membership.Placed(m) || s.coming[m.Pod], s.now):
		return planner.AllocationTimeout
	}
	// Within its grace a dead node's container may come back, or the operator replaces the pod.
	return planner.Pending
}

// expected are the pods that the group's goal asks for beyond those that count already, at most room of them.
func (s sight) expected(g nodepool.WorkerGroup, group *planner.Group, room int) []planner.Node {
	missing := membership.GoalPods(g)
	hosts := map[string]int{}
	for _, m := range s.members {
		if m.Group == g.Name && m.Counted() {
			missing--
			hosts[m.Replica]++
		}
	}
	state := planner.Pending
	if s.breakers.givenUp(g.Name, false, s.now) {
		state = planner.AllocationTimeout
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
			Since:     s.since[g.Name],
		})
	}
	return nodes
}

// replicaNames says to which multi-host replica each missing pod belongs: incomplete ones are filled first.
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
