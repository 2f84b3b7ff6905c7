package gcs

import (
	"bytes"
	"context"
	"hash/maphash"
	"slices"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// reading is a decoded state with the fingerprint of its reply, to recognize a reply that repeats it.
type reading struct {
	scan
	state  raydemand.State
	beside beside
}

// stateReply is a reply of GetClusterResourceState. Before the call, it says what the reply is compared with, and if
// the idle times of one that repeats it are of no use.
type stateReply struct {
	scan
	bare bool
	last *reading // or nil
	// message is nil if the reply repeats the last reading.
	message *autoscalerpb.GetClusterResourceStateReply
}

// repeats reports whether the reply repeats the last reading. A version that is not higher comes from a GCS that has
// started again: what was read from it besides states is void.
func (r *stateReply) repeats(wire []byte) bool {
	var idle map[raydemand.NodeID]int64
	if r.last != nil && !r.bare {
		idle = make(map[raydemand.NodeID]int64, len(r.last.state.Nodes))
	}
	var ok bool
	if r.scan, ok = scanState(wire, idle); !ok {
		r.scan = scan{}
		return false
	}
	return r.last != nil && r.fingerprint == r.last.fingerprint && r.version > r.last.version
}

// readState reads the state. The version in the request is always 0: a version ahead of the server's counter kills the
// GCS (docs/reference/facts.md#state-version).
func (c *Client) readState(ctx context.Context, reply *stateReply) error {
	return c.call(ctx, c.config.Timeout, autoscalerpb.AutoscalerStateService_GetClusterResourceState_FullMethodName,
		&autoscalerpb.GetClusterResourceStateRequest{}, reply)
}

// repeated returns the last state with the version and the idle times of the reply, without nodes if its fingerprint is
// known. It reports false if request_resources in the KV store of a v1 head have changed.
func (c *Client) repeated(
	ctx context.Context, last *reading, reply *stateReply, known uint64,
) (raydemand.State, bool, error) {
	c.enterSession(last.state.Session, reply.version)
	v1, request, err := c.v1Request(ctx)
	if err != nil || v1 != last.beside.v1 || !bytes.Equal(request, last.beside.sdkRequest) {
		return raydemand.State{}, false, err
	}
	newer := *last
	newer.version, newer.state.Version = reply.version, reply.version
	if last.state.Fingerprint == known {
		c.advance(last, &newer)
		state := newer.state
		state.Nodes = nil
		return state, true, nil
	}
	newer.state.Nodes = slices.Clone(last.state.Nodes)
	for i := range newer.state.Nodes {
		n := &newer.state.Nodes[i]
		if ms, known := reply.idle[n.ID]; known && n.Status == raydemand.Idle {
			n.Idle = milliseconds(ms)
		}
	}
	c.advance(last, &newer) // the client and its caller keep the same nodes
	return newer.state, true, nil
}

// advance replaces the last reading by one that repeats it.
func (c *Client) advance(last, newer *reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == last {
		c.last = newer
	}
}

// remember keeps a reading, and returns its fingerprint; 0 if a repetition could not be recognized.
func (c *Client) remember(reply *stateReply, state raydemand.State, b beside) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
	// Where the decoder has left an entry out, the scan has one more than there are nodes.
	if reply.fingerprint == 0 || reply.nodes != len(state.Nodes) {
		return 0
	}
	sum := reply.fingerprint
	if b.v1 {
		sum = mixed(sum ^ maphash.Bytes(seed, b.sdkRequest))
	}
	state.Fingerprint = sum
	c.last = &reading{scan: scan{fingerprint: reply.fingerprint, version: reply.version}, state: state, beside: b}
	return sum
}
