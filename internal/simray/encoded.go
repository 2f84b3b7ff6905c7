package simray

import (
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
)

// encodedState returns the wire form of the reply to a request for the state, or nil if the usual way must answer:
// while there are placement groups, whose bundles are in the states of nodes, and for a request that crashes the head.
// The nodes that have not changed since the last call are not encoded again, so that thousands of heads take little of
// the machine that they share with what is measured.
func (h *Head) encodedState(request *autoscalerpb.GetClusterResourceStateRequest) (wire []byte) {
	h.look(func(c *cluster, now time.Time) {
		gangs := slices.ContainsFunc(c.work, func(w *work) bool { return w.gangID != "" && !w.over })
		if !gangs && request.GetLastSeenClusterResourceStateVersion() <= c.version {
			wire = c.encode(now)
		}
	})
	return wire
}

// encode is the wire form of state, in a reply.
func (c *cluster) encode(now time.Time) []byte {
	c.version++
	rest := &autoscalerpb.ClusterResourceState{ClusterResourceStateVersion: c.version, ClusterSessionName: c.session,
		PendingResourceRequests: c.pending(now)}
	if c.constraint != nil {
		rest.ClusterResourceConstraints = []*autoscalerpb.ClusterResourceConstraint{c.constraint}
	}
	state := mustMarshal(rest)
	for _, dead := range []bool{false, true} {
		for _, n := range c.nodes {
			if n.dead == dead {
				state = protowire.AppendTag(state, 3, protowire.BytesType) // ClusterResourceState.node_states
				state = protowire.AppendBytes(state, c.encodeNode(n, now))
			}
		}
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), state)
}

// encodeNode is the wire form of nodeState.
func (c *cluster) encodeNode(n *node, now time.Time) []byte {
	if n.dead {
		return mustMarshal(c.nodeState(n, now))
	}
	if n.encoded == nil {
		state := c.nodeState(n, now)
		state.NodeStateVersion, state.Status, state.IdleDurationMs = 0, 0, 0
		n.encoded = mustMarshal(state)
	}
	status, idle := n.status(now)
	return append(slices.Clip(n.encoded), mustMarshal(&autoscalerpb.NodeState{
		NodeStateVersion: c.version, Status: status, IdleDurationMs: idle,
	})...)
}

func mustMarshal(message proto.Message) []byte {
	wire, err := proto.Marshal(message)
	if err != nil {
		panic("encoding a state: " + err.Error()) // strings come from tests and are valid UTF-8
	}
	return wire
}
