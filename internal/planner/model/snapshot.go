// Package model holds what goes into a decision and what comes out of it: Snapshot, Policy, Plan, Explanation, and the
// stable codes in them. Their JSON forms are contracts. The package reads and describes these values; it must not
// decide anything, and it knows nothing of how decisions are made.
package model

import (
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Snapshot is everything a decision depends on. Its JSON form is what `autoscaler plan` reads (Snapshot in
// api/openapi.yaml, each key in docs/reference/plan.md).
type Snapshot struct {
	Name    string    `json:"name,omitempty"`
	TakenAt time.Time `json:"takenAt,omitzero"`
	// MaxWorkers bounds the workers of all groups together, the head not counted; nil means no bound.
	MaxWorkers    *int   `json:"maxWorkers"`
	UpscalingMode string `json:"upscalingMode,omitempty"`
	// IdleTimeoutSeconds applies to groups without their own; nil means idle workers are kept.
	IdleTimeoutSeconds *float64 `json:"idleTimeoutSeconds"`
	// LaunchConfigCheckDisabled ignores launch config hashes, as Ray does on KubeRay.
	LaunchConfigCheckDisabled bool    `json:"launchConfigCheckDisabled,omitempty"`
	Groups                    []Group `json:"groups"`
	// Head can serve demand and is never launched or stopped.
	Head  *Node  `json:"head"`
	Nodes []Node `json:"nodes"`
	raydemand.Demand
	// KeptResources is request_resources made over REST. It holds beside Constraint and is not added to it: the cluster
	// keeps at least this much in total, and at least Constraint in total, each judged on its own. All or nothing.
	KeptResources []raydemand.Request `json:"keptResources,omitempty"`
	// OwnedRequests are those that somebody makes in his own name. They add up, and with KeptResources.
	OwnedRequests []raydemand.Owned `json:"ownedRequests,omitempty"`
	// Isolation is the least that all work on GPUs accepts: hardware, limit or any. A request's own goes before it; empty
	// requires nothing of demand without a requirement.
	Isolation nodepool.RequiredIsolation `json:"isolation,omitempty"`
	// Policy is what the snapshot was planned by, for a program that plans it again. Compute goes by its argument.
	Policy Policy `json:"policy,omitzero"`
}

// Group is a worker group as the planner sees it. Min and Max count replicas of NumOfHosts pods each.
type Group struct {
	Name      string            `json:"name"`
	Resources raydemand.Bundle  `json:"resources"`
	Labels    map[string]string `json:"labels,omitempty"`
	Min       int               `json:"minReplicas"`
	Max       int               `json:"maxReplicas"`
	// Replicas is the RayCluster's present value; nil in hand-written snapshots: then the nodes are counted.
	Replicas           *int     `json:"replicas,omitempty"`
	NumOfHosts         int      `json:"numOfHosts"`
	IdleTimeoutSeconds *float64 `json:"idleTimeoutSeconds"`
	Priority           int      `json:"priority,omitempty"`
	// CloudAvailability and RecoverableScore are Ray's memory of failed launches, 0..1; nil means 1.
	CloudAvailability *float64 `json:"cloudAvailability,omitempty"`
	RecoverableScore  *float64 `json:"recoverableScore,omitempty"`
	LaunchConfigHash  string   `json:"launchConfigHash,omitempty"`
	// Price is what one pod costs for an hour, in any one currency; nil where unknown.
	Price *float64 `json:"price,omitempty"`
	// Closed, when not empty, says in words why the group takes no launches now (suspended, broken, cooling down).
	Closed string `json:"closed,omitempty"`
	// CoolingSeconds, when above 0, is for how long the group takes no launches yet because its last ones failed; Closed
	// then says how they failed.
	CoolingSeconds float64 `json:"coolingSeconds,omitempty"`
	// NodesComing is how many of its pods that are on their way wait for a node that Karpenter has launched and that has not registered yet.
	NodesComing int `json:"nodesComing,omitempty"`
	// Slice is what one GPU of its pods is; nil where nothing is known of it.
	Slice *Slice `json:"slice,omitempty"`
	// Pools are all pools of nodes that its pods can land on; none where they are not known.
	Pools []GroupPool `json:"pools,omitempty"`
}

// Unavailable reports whether the group takes no launches now, for whatever reason but its limits.
func (g *Group) Unavailable() bool { return g.Closed != "" || g.CoolingSeconds > 0 }

// MaxCount bounds how many bundles or pods are counted; sums of a few such numbers cannot overflow.
const MaxCount = 1 << 40

// NodeState is a node's state in a snapshot.
type NodeState string

// Running and Idle nodes have joined Ray. Pending ones are on their way: asked for or created. AllocationTimeout ones
// were given up and do not count. Leaving ones are drained or being deleted: they serve nothing but exist.
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
	// Resources stands for both amounts of an untouched head.
	Resources    raydemand.Bundle  `json:"resources,omitempty"`
	Total        raydemand.Bundle  `json:"total"`
	Available    raydemand.Bundle  `json:"available"`
	Labels       map[string]string `json:"labels,omitempty"`
	PlacedLabels map[string]string `json:"placedLabels,omitempty"`
	IdleSeconds  float64           `json:"idleSeconds"`
	// Refused are amounts, of what Ray gives out by the card, that have waited for a while beside the node although as
	// much is free on it in sum: no card has so much free.
	Refused raydemand.Bundle `json:"refused,omitempty"`
	// Since is when a pod on its way was asked for or created; zero where that is not known.
	Since time.Time `json:"since,omitzero"`
	// Replica joins the hosts of one multi-host replica.
	Replica string `json:"replica,omitempty"`
	// Expected marks a pod that was asked for and is not seen yet; Pod is then a made-up name.
	Expected bool `json:"expected,omitempty"`
	// IMState is the state that Ray's own instance manager would give the node. Compute does not look at it; the programs
	// that plan the same snapshot by Ray's planner do (test/bench/ray).
	IMState               string `json:"imState,omitempty"`
	LaunchConfigHash      string `json:"launchConfigHash,omitempty"`
	GroupLaunchConfigHash string `json:"groupLaunchConfigHash,omitempty"`
}

// EachBundle calls f with every bundle that is asked for.
func (s *Snapshot) EachBundle(f func(raydemand.Bundle)) {
	for _, requests := range s.RequestLists() {
		for i := range requests {
			f(requests[i].Bundle)
		}
	}
	for i := range s.Gangs {
		for _, b := range s.Gangs[i].Bundles {
			f(b)
		}
		for _, alternative := range s.Gangs[i].Fallbacks {
			for _, b := range alternative {
				f(b)
			}
		}
	}
}

// RequestLists are all lists of requests that a snapshot has, those that wait and those that stand.
func (s *Snapshot) RequestLists() [][]raydemand.Request {
	lists := [][]raydemand.Request{s.Requests, s.Constraint, s.KeptResources}
	for i := range s.OwnedRequests {
		lists = append(lists, s.OwnedRequests[i].Requests)
	}
	return lists
}
