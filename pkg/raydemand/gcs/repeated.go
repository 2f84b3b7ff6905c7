package gcs

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"slices"

	"google.golang.org/grpc"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// reading is a decoded state with the fingerprint of its reply, to recognize a reply that repeats it.
type reading struct {
	scan
	state  raydemand.State
	beside beside
	// at is the place of each node in the state.
	at map[raydemand.NodeID]int
}

// stateReply is a reply of GetClusterResourceState.
type stateReply struct {
	scan
	last *reading
	// message is nil if the reply repeats the last reading.
	message *autoscalerpb.GetClusterResourceStateReply
}

// repeats reports whether the reply repeats the last reading. A version that is not higher comes from a GCS that has
// started again: what was read from it besides states is void.
func (r *stateReply) repeats(wire []byte) bool {
	var ok bool
	if r.scan, ok = scanState(wire); !ok {
		r.scan = scan{}
		return false
	}
	return r.last != nil && r.fingerprint == r.last.fingerprint && r.version > r.last.version
}

func (c *Client) lastReading() *reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// readState reads the state. The version in the request is always 0: a version ahead of the server's counter kills the
// GCS (docs/reference/facts.md#state-version).
func (c *Client) readState(ctx context.Context, last *reading, options ...grpc.CallOption) (*stateReply, error) {
	reply := &stateReply{last: last}
	method := autoscalerpb.AutoscalerStateService_GetClusterResourceState_FullMethodName
	return reply, c.conn.Invoke(ctx, method, &autoscalerpb.GetClusterResourceStateRequest{}, reply, options...)
}

// repeated returns the last state with the version and the idle times of the reply. It reports false if
// request_resources in the KV store of a v1 head have changed.
func (c *Client) repeated(ctx context.Context, last *reading, reply *stateReply) (raydemand.State, bool, error) {
	c.enterSession(last.state.Session, reply.version)
	v1, err := c.isV1(ctx)
	var request []byte
	if err == nil && v1 {
		request, _, err = c.kvGet(ctx, "", "autoscaler_resource_request")
	}
	if errors.Is(err, raydemand.ErrUnsupported) {
		v1, err = false, nil
	}
	if err != nil || v1 != last.beside.v1 || !bytes.Equal(request, last.beside.sdkRequest) {
		return raydemand.State{}, false, err
	}
	state := last.state
	state.Version, state.Nodes = reply.version, slices.Clone(last.state.Nodes)
	for _, idle := range reply.idle {
		if n := &state.Nodes[last.at[idle.id]]; n.Status == raydemand.Idle {
			n.Idle = milliseconds(idle.ms)
		}
	}
	c.advance(last, reply.version)
	return state, true, nil
}

// advance notes a newer version of the last reading.
func (c *Client) advance(last *reading, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == last {
		newer := *last
		newer.version = version
		c.last = &newer
	}
}

// remember keeps a reading, and returns its fingerprint; 0 if a repetition could not be recognized.
func (c *Client) remember(reply *stateReply, state raydemand.State, b beside) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
	// Where the decoder has left an entry out, the scan has one more than there are nodes.
	if reply.fingerprint == 0 || len(reply.idle) != len(state.Nodes) {
		return 0
	}
	sum := reply.fingerprint
	if b.v1 {
		sum = mixed(sum ^ maphash.Bytes(seed, b.sdkRequest))
	}
	state.Fingerprint = sum
	at := make(map[raydemand.NodeID]int, len(state.Nodes))
	for i := range state.Nodes {
		at[state.Nodes[i].ID] = i
	}
	c.last = &reading{
		scan:   scan{fingerprint: reply.fingerprint, version: reply.version},
		state:  state,
		beside: b,
		at:     at,
	}
	return sum
}
