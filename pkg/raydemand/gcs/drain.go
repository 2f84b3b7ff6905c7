package gcs

import (
	"context"
	"fmt"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// nilNodeID is Ray's NodeID::Nil(): the GCS answers "accepted" for it, which would be taken for a node that leaves.
var nilNodeID = func() (id raydemand.NodeID) {
	for i := range id {
		id[i] = 0xff
	}
	return id
}()

// Drain asks Ray to let a node go. The answer counts only for the node it was asked for: Ray also says "accepted" of
// nodes it does not know or that are dead, so the caller waits until the node shows DEAD.
//
// A DrainIdle is sent only for a node whose Status is Idle, else ErrNotIdle: Ray marks the node's actors as preempted
// before it asks the raylet, also when that refuses. A node that is already Draining or Dead needs no call and counts
// as accepted (Ray 2.40 would refuse the second drain of a draining node). ErrRayletUnreachable and ErrUnavailable
// mean that the outcome is unknown; asking again is safe once the next State shows the node idle.
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
	reply, err := call(ctx, c, c.config.DrainTimeout, "DrainNode", c.autoscaler.DrainNode, request)
	if err != nil {
		return raydemand.DrainReply{}, fmt.Errorf("draining Ray node %s (%s): %w", node.ID, node.Instance, err)
	}
	return raydemand.DrainReply{Accepted: reply.GetIsAccepted(), Message: reply.GetRejectionReasonMessage()}, nil
}

// drainRequest refuses everything that would be harmful on the wire.
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
