// Package model holds the input and the output of a decision: Snapshot, Policy, Plan, Explanation, and their stable
// codes. Their JSON forms are contracts. The package describes these values, and formats amounts, durations and lists
// (phrase.go, span.go). It must not decide anything or know how decisions are made.
package model

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Snapshot is everything a decision depends on. Its JSON form is what `autoscaler plan` reads (Snapshot in
// api/openapi.yaml, each key in docs/reference/plan.md).
type Snapshot struct {
	Name    string    `json:"name,omitempty"`
	TakenAt time.Time `json:"takenAt,omitzero"`
	// MaxWorkers limits the workers of all groups together, without the head; nil means no limit.
	MaxWorkers    *int   `json:"maxWorkers"`
	UpscalingMode string `json:"upscalingMode,omitempty"`
	// IdleTimeoutSeconds applies to groups without their own; nil means that idle workers are kept.
	IdleTimeoutSeconds *float64 `json:"idleTimeoutSeconds"`
	// LaunchConfigCheckDisabled ignores launch config hashes, as Ray does on KubeRay.
	LaunchConfigCheckDisabled bool    `json:"launchConfigCheckDisabled,omitempty"`
	Groups                    []Group `json:"groups"`
	// Head can serve demand and is never launched or stopped.
	Head  *Node  `json:"head"`
	Nodes []Node `json:"nodes"`
	raydemand.Demand
	// KeptResources is request_resources over REST. It is not added to Constraint: the cluster keeps at least
	// KeptResources in total, and at least Constraint in total. Each is served as a whole or not at all.
	KeptResources []raydemand.Request `json:"keptResources,omitempty"`
	// OwnedRequests are the requests of owners. They add up, also with KeptResources.
	OwnedRequests []raydemand.Owned `json:"ownedRequests,omitempty"`
	// Isolation is the minimum that all work on GPUs accepts: hardware, limit or any. A request's own value takes
	// precedence; empty requires nothing of demand without a requirement.
	Isolation nodepool.RequiredIsolation `json:"isolation,omitempty"`
	// Places are where pods of the groups may run: what is free on existing nodes, and what pools may still add. Groups
	// with a Pod are limited by them.
	Places []landing.Place `json:"places,omitempty"`
	// Promised are pods that other RayClusters have on their way to the same places and that come before the groups'
	// pods, and the head if it has no node yet.
	Promised []landing.Promise `json:"promised,omitempty"`
	// Quotas bound what the pods of groups may have together, for example a quota of Kueue.
	Quotas []landing.Quota `json:"quotas,omitempty"`
	// Warm is what a capacity policy wants free on top of all that; nil if nothing.
	Warm *Warm `json:"warm,omitempty"`
	// Turn is where the plan continues among demand that is too much for one plan: the Next of the plan before, or
	// empty for the beginning.
	Turn string `json:"turn,omitempty"`
	// Policy is the policy of the original plan, for programs that plan the snapshot again. Compute uses its argument
	// instead.
	Policy Policy `json:"policy,omitzero"`
}

// Group is a worker group. Min and Max count replicas of NumOfHosts pods each.
type Group struct {
	Name      string            `json:"name"`
	Resources raydemand.Bundle  `json:"resources"`
	Labels    map[string]string `json:"labels,omitempty"`
	Min       int               `json:"minReplicas"`
	Max       int               `json:"maxReplicas"`
	// Replicas is the current value in the RayCluster. It is nil in hand-written snapshots; then the nodes are counted.
	Replicas           *int     `json:"replicas,omitempty"`
	NumOfHosts         int      `json:"numOfHosts"`
	IdleTimeoutSeconds *float64 `json:"idleTimeoutSeconds"`
	Priority           int      `json:"priority,omitempty"`
	// CloudAvailability and RecoverableScore are Ray's record of failed launches, 0 to 1; nil means 1.
	CloudAvailability *float64 `json:"cloudAvailability,omitempty"`
	RecoverableScore  *float64 `json:"recoverableScore,omitempty"`
	LaunchConfigHash  string   `json:"launchConfigHash,omitempty"`
	// Price is the hourly price of one pod, in any single currency; nil if unknown.
	Price *float64 `json:"price,omitempty"`
	// Closed, if not empty, says why the group takes no launches now (suspended, broken, cooling down).
	Closed string `json:"closed,omitempty"`
	// ScaleGates, if not empty, are the gates with which other controllers keep the group from growing.
	ScaleGates []string `json:"scaleGates,omitempty"`
	// CoolingSeconds, if above 0, is how much longer the group takes no launches because its last ones failed. Closed
	// then says how they failed.
	CoolingSeconds float64 `json:"coolingSeconds,omitempty"`
	// NodesComing counts its pods on their way whose node Karpenter has launched and that has not registered yet.
	NodesComing int `json:"nodesComing,omitempty"`
	// Slice is what one GPU of its pods is; nil if unknown.
	Slice *Slice `json:"slice,omitempty"`
	// Announces is what is known about labels and the accelerator type of new pods beyond Labels and Resources, because
	// Ray reads them on the machine. A label that it does not name is not announced.
	Announces []landing.Announced `json:"announces,omitempty"`
	// Pools are all pools of nodes that its pods can be scheduled on; empty if unknown.
	Pools []landing.GroupPool `json:"pools,omitempty"`
	// NodeFit says that no known node could hold one of its pods; nil if one could, or if nodes are unknown.
	NodeFit *NodeFit `json:"nodeFit,omitempty"`
	// Pod is what one of its pods takes of the snapshot's Places; nil if the nodes are unknown. Its name is the
	// group's. Bound is how many of the group's pods are on nodes already, so that they are not part of what is free.
	Pod   *landing.Pod `json:"pod,omitempty"`
	Bound int64        `json:"bound,omitempty"`
}

// Unavailable reports whether the group takes no launches now for a reason other than its limits.
func (g *Group) Unavailable() bool {
	return g.Closed != "" || g.CoolingSeconds > 0 || len(g.ScaleGates) > 0 || g.Excluded()
}

// MaxCount limits counts of bundles and pods, so that sums of a few counts cannot overflow.
const MaxCount = 1 << 40

// NodeState is a node's state in a snapshot.
type NodeState string

// Running and Idle nodes have joined Ray. Pending nodes are on their way: requested or created. AllocationTimeout nodes
// were given up and do not count. Leaving nodes are draining or being deleted: they exist but serve nothing.
const (
	Running           NodeState = "RUNNING"
	Idle              NodeState = "IDLE"
	Pending           NodeState = "PENDING"
	AllocationTimeout NodeState = "ALLOCATION_TIMEOUT"
	Leaving           NodeState = "LEAVING"
)

// Node is one worker, or the head.
type Node struct {
	Pod   string    `json:"pod"`
	Group string    `json:"group"`
	State NodeState `json:"state"`
	// Resources sets both Total and Available of an unused head.
	Resources    raydemand.Bundle  `json:"resources,omitempty"`
	Total        raydemand.Bundle  `json:"total"`
	Available    raydemand.Bundle  `json:"available"`
	Labels       map[string]string `json:"labels,omitempty"`
	PlacedLabels map[string]string `json:"placedLabels,omitempty"`
	IdleSeconds  float64           `json:"idleSeconds"`
	// Activity says in Ray's words why a node that has joined is not idle; empty if unknown. Compute does not use it:
	// it explains.
	Activity []string `json:"activity,omitempty"`
	// Refused are amounts, of resources that Ray assigns by card, that have been waiting for a while although the node
	// has enough free in total: no single card has that much free.
	Refused raydemand.Bundle `json:"refused,omitempty"`
	// Since is when a pod on its way was requested or created; zero if unknown.
	Since time.Time `json:"since,omitzero"`
	// Replica is equal for the hosts of one multi-host replica.
	Replica string `json:"replica,omitempty"`
	// KubeNode is the Kubernetes node of the pod; empty if it has none or it is unknown. Compute does not use it.
	KubeNode string `json:"kubeNode,omitempty"`
	// Guard says who keeps node autoscalers from evicting the pod: heliostat, user, or nobody. Compute does not use it.
	Guard string `json:"guard,omitempty"`
	// Going says why the node's machine is about to go, and until when. If that is certain, the node is Leaving.
	Going *departure.Notice `json:"going,omitempty"`
	// Arrival is where a starting worker is; nil if that is unknown. Compute does not use it.
	Arrival *arrival.State `json:"arrival,omitempty"`
	// Expected marks a pod that was requested and is not visible yet. Its Pod is a generated name.
	Expected bool `json:"expected,omitempty"`
	// IMState is the node's state in Ray's own instance manager. Compute does not use it; the programs that plan the
	// same snapshot with Ray's planner do (test/bench/ray).
	IMState               string `json:"imState,omitempty"`
	LaunchConfigHash      string `json:"launchConfigHash,omitempty"`
	GroupLaunchConfigHash string `json:"groupLaunchConfigHash,omitempty"`
}

// Main returns the resource by which the node counts as used: its GPUs, or its CPUs if it has none.
func (n *Node) Main() string {
	if n.Total[raydemand.GPU] > 0 {
		return raydemand.GPU
	}
	return raydemand.CPU
}

// OnlyReserves reports whether nothing runs on a node that has joined, and placement groups reserve what is in use.
func (n *Node) OnlyReserves() bool {
	if len(n.Activity) == 0 || len(n.PlacedLabels) == 0 || slices.Contains(n.Activity, raydemand.ActiveWorkers) {
		return false
	}
	activity := raydemand.ReadActivity(n.Activity)
	return !activity.Arguments && len(activity.Resources) > 0
}

// EachBundle calls f for every bundle of the demand.
func (s *Snapshot) EachBundle(f func(raydemand.Bundle)) {
	for _, requests := range s.RequestLists() {
		for i := range requests {
			f(requests[i].Bundle)
		}
	}
	for i := range s.Gangs {
		for _, bundles := range s.Gangs[i].Alternatives() {
			for _, b := range bundles {
				f(b)
			}
		}
	}
}

// RequestLists returns all lists of requests in a snapshot: pending ones, calls of request_resources, and bundles of
// warm capacity.
func (s *Snapshot) RequestLists() [][]raydemand.Request {
	lists := [][]raydemand.Request{s.Requests, s.Constraint, s.KeptResources}
	for i := range s.OwnedRequests {
		lists = append(lists, s.OwnedRequests[i].Requests)
	}
	if warm := s.Warm.requests(); warm != nil {
		lists = append(lists, warm)
	}
	return lists
}
