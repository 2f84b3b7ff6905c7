package simray

import (
	"encoding/binary"
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
	const prefix = 1 + binary.MaxVarintLen64 // the state's tag and length, which is known last
	reply := mustMarshal(make([]byte, prefix, prefix+c.longest), rest)
	for _, dead := range []bool{false, true} {
		for _, n := range c.nodes {
			if n.dead == dead {
				reply = c.encodeNode(reply, n, now)
			}
		}
	}
	c.longest = max(c.longest, len(reply)+len(reply)/16)
	var head [prefix]byte
	begin := protowire.AppendTag(head[:0], 1, protowire.BytesType)
	begin = protowire.AppendVarint(begin, uint64(len(reply)-prefix))
	reply = reply[prefix-len(begin):]
	copy(reply, begin)
	return reply
}

// encodeNode appends the wire form of nodeState, as one of ClusterResourceState.node_states.
func (c *cluster) encodeNode(state []byte, n *node, now time.Time) []byte {
	state = protowire.AppendTag(state, 3, protowire.BytesType)
	if n.dead {
		return protowire.AppendBytes(state, mustMarshal(nil, c.nodeState(n, now)))
	}
	if n.encoded == nil {
		state := c.nodeState(n, now)
		state.NodeStateVersion, state.Status, state.IdleDurationMs = 0, 0, 0
		n.encoded = mustMarshal(nil, state)
	}
	status, idle := n.status(now)
	var room [32]byte
	changing := mustMarshal(room[:0], &autoscalerpb.NodeState{
		NodeStateVersion: c.version, Status: status, IdleDurationMs: idle,
	})
	state = protowire.AppendVarint(state, uint64(len(n.encoded)+len(changing)))
	return append(append(state, n.encoded...), changing...)
}

// mustMarshal appends the wire form of a message.
func mustMarshal(to []byte, message proto.Message) []byte {
	wire, err := proto.MarshalOptions{}.MarshalAppend(to, message)
	if err != nil {
		panic("encoding a state: " + err.Error()) // strings come from tests and are valid UTF-8
	}
	return wire
}
