package simray

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// nilClusterID is 28 bytes of 0xff. Only GetClusterId accepts it.
var nilClusterID = strings.Repeat("ff", 28)

type autoscalerService struct {
	autoscalerpb.UnimplementedAutoscalerStateServiceServer
	head *Head
}

// GetClusterResourceState crashes the head if the requested version is ahead of its counter, as a real GCS does.
func (s autoscalerService) GetClusterResourceState(
	ctx context.Context, r *autoscalerpb.GetClusterResourceStateRequest,
) (*autoscalerpb.GetClusterResourceStateReply, error) {
	var state *autoscalerpb.ClusterResourceState
	s.head.look(func(c *cluster, now time.Time) {
		if r.GetLastSeenClusterResourceStateVersion() <= c.version {
			state = c.state(now)
		}
	})
	if state == nil {
		return nil, s.head.crash(ctx)
	}
	return &autoscalerpb.GetClusterResourceStateReply{ClusterResourceState: state}, nil
}

// GetClusterStatus returns the state and the last report.
func (s autoscalerService) GetClusterStatus(
	context.Context, *autoscalerpb.GetClusterStatusRequest,
) (*autoscalerpb.GetClusterStatusReply, error) {
	reply := &autoscalerpb.GetClusterStatusReply{}
	s.head.look(func(c *cluster, now time.Time) {
		reply.ClusterResourceState, reply.AutoscalingState = c.state(now), c.report
	})
	return reply, nil
}

// ReportAutoscalingState ignores a version lower than the stored one. An equal version replaces the report.
func (s autoscalerService) ReportAutoscalingState(
	_ context.Context, r *autoscalerpb.ReportAutoscalingStateRequest,
) (*autoscalerpb.ReportAutoscalingStateReply, error) {
	s.head.look(func(c *cluster, _ time.Time) {
		c.reports++
		if c.report == nil ||
			r.GetAutoscalingState().GetAutoscalerStateVersion() >= c.report.GetAutoscalerStateVersion() {
			c.report = r.GetAutoscalingState()
		}
	})
	return &autoscalerpb.ReportAutoscalingStateReply{}, nil
}

// RequestClusterResourceConstraint replaces the constraint, also on a v1 head.
func (s autoscalerService) RequestClusterResourceConstraint(
	_ context.Context, r *autoscalerpb.RequestClusterResourceConstraintRequest,
) (*autoscalerpb.RequestClusterResourceConstraintReply, error) {
	s.head.look(func(c *cluster, _ time.Time) {
		c.constraint = r.GetClusterResourceConstraint()
		if c.constraint == nil {
			c.constraint = &autoscalerpb.ClusterResourceConstraint{}
		}
	})
	return &autoscalerpb.RequestClusterResourceConstraintReply{}, nil
}

// crash stops the server like a failed check in the GCS. The caller gets a connection error.
func (h *Head) crash(ctx context.Context) error {
	h.served.Go(h.Stop)
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

type nodeInfoService struct {
	raypb.UnimplementedNodeInfoGcsServiceServer
	head *Head
}

// GetClusterId returns the session's 28 bytes.
func (s nodeInfoService) GetClusterId(context.Context, *raypb.GetClusterIdRequest) (*raypb.GetClusterIdReply, error) {
	id := make([]byte, 28)
	if _, err := fmt.Sscanf(s.head.ClusterID(), "%x", &id); err != nil {
		return nil, fmt.Errorf("decoding cluster id: %w", err)
	}
	return &raypb.GetClusterIdReply{Status: &raypb.GcsStatus{}, ClusterId: id}, nil
}

// CheckAlive returns the version of Ray. Only 2.60 also returns whether the head is the leader.
func (s nodeInfoService) CheckAlive(context.Context, *raypb.CheckAliveRequest) (*raypb.CheckAliveReply, error) {
	reply := &raypb.CheckAliveReply{Status: &raypb.GcsStatus{}, RayVersion: string(s.head.options.Version)}
	if s.head.options.Version == Ray260 {
		leads := true
		reply.IsLeader = &leads
	}
	return reply, nil
}

// GetAllNodeInfo returns the node table. It has labels in every version.
func (s nodeInfoService) GetAllNodeInfo(
	context.Context, *raypb.GetAllNodeInfoRequest,
) (*raypb.GetAllNodeInfoReply, error) {
	reply := &raypb.GetAllNodeInfoReply{Status: &raypb.GcsStatus{}}
	s.head.look(func(c *cluster, _ time.Time) {
		for _, n := range c.nodes {
			info := &raypb.GcsNodeInfo{
				NodeId: n.id[:], NodeManagerAddress: n.IP, NodeName: n.IP,
				InstanceId: n.Instance, NodeTypeName: n.Group,
				IsHeadNode: n == c.head, Labels: n.Labels, ResourcesTotal: wireBundle(n.Resources),
			}
			if n.dead {
				info.State = raypb.GcsNodeInfo_DEAD
				info.DeathInfo = &raypb.NodeDeathInfo{Reason: n.death, ReasonMessage: n.message}
			}
			reply.NodeInfoList = append(reply.NodeInfoList, info)
		}
		reply.Total = int64(len(c.nodes))
	})
	return reply, nil
}

type nodeResourceService struct {
	raypb.UnimplementedNodeResourceInfoGcsServiceServer
	head *Head
}

// GetDrainingNodes lists drained nodes that are not dead.
func (s nodeResourceService) GetDrainingNodes(
	context.Context, *raypb.GetDrainingNodesRequest,
) (*raypb.GetDrainingNodesReply, error) {
	reply := &raypb.GetDrainingNodesReply{Status: &raypb.GcsStatus{}}
	s.head.look(func(c *cluster, _ time.Time) {
		for _, n := range c.nodes {
			if !n.dead && n.drain != autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_UNSPECIFIED {
				reply.DrainingNodes = append(reply.DrainingNodes,
					&raypb.DrainingNode{NodeId: n.id[:], DrainingDeadlineTimestampMs: n.deadline})
			}
		}
	})
	return reply, nil
}

type actorInfoService struct {
	raypb.UnimplementedActorInfoGcsServiceServer
	head *Head
}

// firstJob is the job of the driver that connected first. All actors belong to it, and firstDriver has started them.
var (
	firstJob    = []byte{1, 0, 0, 0}
	firstDriver = &raypb.Address{WorkerId: append([]byte{1}, make([]byte, 27)...)}
)

// GetAllActorInfo lists the living actors. A real GCS lists those that have ended after them, as this one always does.
func (s actorInfoService) GetAllActorInfo(
	_ context.Context, r *raypb.GetAllActorInfoRequest,
) (*raypb.GetAllActorInfoReply, error) {
	reply := &raypb.GetAllActorInfoReply{Status: &raypb.GcsStatus{}}
	s.head.look(func(c *cluster, _ time.Time) {
		for _, w := range c.work {
			if !w.task.Actor || w.over {
				continue
			}
			actor := &raypb.ActorTableData{ActorId: w.actorID[:16], JobId: firstJob,
				State: raypb.ActorTableData_PENDING_CREATION, Preempted: w.preempted,
				RequiredResources: map[string]float64{}, OwnerAddress: firstDriver}
			if on := w.parts[0].on; on != nil {
				actor.State, actor.NodeId = raypb.ActorTableData_ALIVE, on.id[:]
				actor.Address = &raypb.Address{WorkerId: w.actorID[:]}
			}
			for name, amount := range w.parts[0].bundle {
				actor.RequiredResources[name] = amount.Float()
			}
			reply.ActorTableData = append(reply.ActorTableData, actor)
		}
	})
	reply.ActorTableData = append(reply.ActorTableData,
		&raypb.ActorTableData{ActorId: []byte{255}, State: raypb.ActorTableData_DEAD})
	if r.Limit != nil {
		most := max(0, min(int64(len(reply.ActorTableData)), r.GetLimit()))
		reply.ActorTableData = reply.ActorTableData[:most]
	}
	return reply, nil
}

// DrainNode follows the order of a real GCS: it checks the request, marks the actors, and then asks the raylet.
func (s autoscalerService) DrainNode(
	ctx context.Context, r *autoscalerpb.DrainNodeRequest,
) (*autoscalerpb.DrainNodeReply, error) {
	if r.GetDeadlineTimestampMs() < 0 {
		return nil, rayError(ctx, codes.Aborted, "Invalid",
			fmt.Sprintf("Draining deadline must be non-negative, received %d", r.GetDeadlineTimestampMs()))
	}
	var want raydemand.NodeID
	if size := len(r.GetNodeId()); size != 0 && size != len(want) {
		return nil, s.head.crash(ctx)
	}
	reply := &autoscalerpb.DrainNodeReply{IsAccepted: true}
	rayletDies := false
	s.head.look(func(c *cluster, now time.Time) {
		n := c.find(r.GetNodeId())
		if n == nil || n.dead {
			return
		}
		c.markPreempted(n)
		if r.GetReason() == autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_UNSPECIFIED {
			rayletDies = true
			c.die(n, raypb.NodeDeathInfo_UNEXPECTED_TERMINATION, "raylet died", now)
			return
		}
		if text := c.refusal(n, r.GetReason()); text != "" {
			reply = &autoscalerpb.DrainNodeReply{RejectionReasonMessage: text}
			return
		}
		// Only the first drain counts: a second drain of the same node changes neither reason nor deadline.
		if n.drain == autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_UNSPECIFIED {
			n.drain, n.message, n.deadline = r.GetReason(), r.GetReasonMessage(), r.GetDeadlineTimestampMs()
		}
	})
	if rayletDies {
		name, text := s.head.options.Version.unreachable()
		return nil, rayError(ctx, codes.Aborted, name, text)
	}
	return reply, nil
}

func (c *cluster) markPreempted(n *node) {
	for _, w := range c.work {
		if w.task.Actor && w.parts[0].on == n {
			w.preempted = true
		}
	}
}

// refusal returns the raylet's reason to reject a drain, or "". A drain because of idleness needs an idle node. Since
// 2.52, the raylet accepts a second drain of a draining node.
func (c *cluster) refusal(n *node, reason autoscalerpb.DrainNodeReason) string {
	drains := n.drain != autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_UNSPECIFIED
	if reason != autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_IDLE_TERMINATION || !n.busy() ||
		drains && c.options.Version != Ray240 {
		return ""
	}
	return "The node to be idle terminated is no longer idle."
}
