package fleet

import (
	"math"

	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
)

// State is what a head answers.
type State = autoscalerpb.ClusterResourceState

// Old answers with the first state again and again.
func Old() func(*State) {
	var first *State
	return func(state *State) {
		if first == nil {
			first = proto.Clone(state).(*State)
		}
		proto.Reset(state)
		proto.Merge(state, first)
	}
}

// Partial leaves out every second node and every second kind of demand.
func Partial(state *State) {
	var nodes []*autoscalerpb.NodeState
	for i, node := range state.GetNodeStates() {
		if i%2 == 0 {
			nodes = append(nodes, node)
		}
	}
	state.NodeStates = nodes
	if half := len(state.PendingResourceRequests) / 2; half > 0 {
		state.PendingResourceRequests = state.PendingResourceRequests[:half]
	}
}

// Duplicate lists all nodes and all demand twice.
func Duplicate(state *State) {
	state.NodeStates = append(state.NodeStates, state.NodeStates...)
	state.PendingResourceRequests = append(state.PendingResourceRequests, state.PendingResourceRequests...)
	state.PendingGangResourceRequests = append(state.PendingGangResourceRequests, state.PendingGangResourceRequests...)
}

// Negative answers with negative amounts, counts, times and versions.
func Negative(state *State) {
	state.ClusterResourceStateVersion = -state.ClusterResourceStateVersion
	for _, node := range state.GetNodeStates() {
		node.IdleDurationMs = -1 - node.IdleDurationMs
		for name, amount := range node.AvailableResources {
			node.AvailableResources[name] = -1 - amount
		}
	}
	for _, request := range state.GetPendingResourceRequests() {
		request.Count = -request.Count
	}
}

// Enormous answers with amounts, counts and times near the ends of their types, and with numbers that are none.
func Enormous(state *State) {
	for i, node := range state.GetNodeStates() {
		node.IdleDurationMs = math.MaxInt64
		for name := range node.AvailableResources {
			node.AvailableResources[name] = []float64{math.Inf(1), math.NaN(), math.MaxFloat64}[i%3]
		}
	}
	request := func(name string, amount float64) *autoscalerpb.ResourceRequest {
		return &autoscalerpb.ResourceRequest{ResourcesBundle: map[string]float64{name: amount}}
	}
	state.PendingResourceRequests = append(state.PendingResourceRequests,
		&autoscalerpb.ResourceRequestByCount{Request: request("CPU", 1), Count: math.MaxInt64},
		&autoscalerpb.ResourceRequestByCount{Request: request("GPU", 1), Count: 1 << 40},
		&autoscalerpb.ResourceRequestByCount{Request: request("CPU", math.Inf(1)), Count: 1 << 20},
		&autoscalerpb.ResourceRequestByCount{Request: request("GPU", math.NaN()), Count: 1},
		&autoscalerpb.ResourceRequestByCount{Request: request("memory", math.MaxFloat64), Count: math.MaxInt64})
}
