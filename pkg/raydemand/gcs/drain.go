package gcs

import (
	"context"
	"fmt"
	"time"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// nilNodeID is Ray's NodeID::Nil(). The GCS accepts a drain of it, although no such node exists.
var nilNodeID = func() (id raydemand.NodeID) {
	for i := range id {
		id[i] = 0xff
	}
	return id
}()

// Drain asks Ray to drain a node. An accepted drain does not mean that the node terminates: Ray also accepts drains of
// unknown and dead nodes. The caller must wait until State shows the node as Dead.
//
// Drain sends a DrainIdle only if the Status of the node is Idle, and otherwise returns ErrNotIdle: Ray marks the
// actors of the node as preempted before it asks the raylet, even if the raylet then rejects the drain. For a node that
// is already Draining or Dead, Drain returns accepted without a call, because Ray 2.40 rejects a second drain of a
// draining node. After an error the outcome is unknown. A retry is safe once the next State shows the node as Idle.
func (c *Client) Drain(ctx context.Context, drain raydemand.Drain) (raydemand.DrainReply, error) {
	node := drain.Node
	request, err := drainRequest(drain)
	if err != nil {
		return raydemand.DrainReply{}, fmt.Errorf("draining Ray node %s (%s): %w", node.ID, node.Instance, err)
	}
	if node.Status == raydemand.Dead || (drain.Reason == raydemand.DrainIdle && node.Status == raydemand.Draining) {
		return raydemand.DrainReply{Accepted: true, Message: "node is already " + string(node.Status)}, nil
	}
	if drain.Reason == raydemand.DrainIdle && node.Status != raydemand.Idle {
		return raydemand.DrainReply{}, fmt.Errorf("draining Ray node %s (%s): %w: it is %s", node.ID, node.Instance,
			raydemand.ErrNotIdle, node.Status)
	}
	reply := &autoscalerpb.DrainNodeReply{}
	if err := c.call(ctx, drainTimeout, autoscalerpb.AutoscalerStateService_DrainNode_FullMethodName, request,
		reply); err != nil {
		return raydemand.DrainReply{}, fmt.Errorf("draining Ray node %s (%s): %w", node.ID, node.Instance, err)
	}
	return raydemand.DrainReply{Accepted: reply.GetIsAccepted(), Message: reply.GetRejectionReasonMessage()}, nil
}

// drainTimeout is the timeout of a drain: the GCS waits for the raylet, for up to 15 s if the raylet died.
const drainTimeout = 30 * time.Second

// drainRequest returns an error for every request that could crash the GCS or a raylet.
func drainRequest(drain raydemand.Drain) (*autoscalerpb.DrainNodeRequest, error) {
	var zero raydemand.NodeID
	if drain.Node.ID == zero || drain.Node.ID == nilNodeID {
		return nil, fmt.Errorf("node id is nil: take the node from a State")
	}
	request := &autoscalerpb.DrainNodeRequest{NodeId: drain.Node.ID[:], ReasonMessage: drain.Message}
	switch drain.Reason {
	case raydemand.DrainIdle:
		request.Reason = autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_IDLE_TERMINATION
	case raydemand.DrainPreemption:
		request.Reason = autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_PREEMPTION
	default:
		return nil, fmt.Errorf("reason %d is none of DrainIdle, DrainPreemption: it would kill the raylet",
			drain.Reason)
	}
	if !drain.Deadline.IsZero() {
		request.DeadlineTimestampMs = drain.Deadline.UnixMilli()
		if request.DeadlineTimestampMs <= 0 {
			return nil, fmt.Errorf("deadline %v is before 1970: Ray refuses it", drain.Deadline)
		}
	}
	return request, nil
}
