package engine

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
)

// rayHead is a Ray head at rest, behind Ray's protocol: its nodes never change, and nothing waits for a node. The rest
// of Ray is in test/simray.
type rayHead struct {
	autoscalerpb.UnimplementedAutoscalerStateServiceServer
	raypb.UnimplementedInternalKVGcsServiceServer
	nodes   []*autoscalerpb.NodeState
	token   string // required in every call, if set
	addr    string
	version int64
}

// start serves at a free port until the returned function is called. Without tls, the head speaks plain text.
func (h *rayHead) start(tls *tls.Config) (stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	options := []grpc.ServerOption{grpc.UnaryInterceptor(h.authorize)}
	if tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(tls)))
	}
	server := grpc.NewServer(options...)
	autoscalerpb.RegisterAutoscalerStateServiceServer(server, h)
	raypb.RegisterInternalKVGcsServiceServer(server, h)
	h.addr = listener.Addr().String()
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	return func() { server.Stop(); <-done }, nil
}

func (h *rayHead) authorize(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	header, _ := metadata.FromIncomingContext(ctx)
	if got := header.Get("authorization"); h.token != "" && (len(got) != 1 || got[0] != "Bearer "+h.token) {
		return nil, status.Error(codes.Unauthenticated, "InvalidAuthToken: Authentication token is missing or incorrect")
	}
	return handler(ctx, request)
}

func (h *rayHead) GetClusterResourceState(
	context.Context, *autoscalerpb.GetClusterResourceStateRequest,
) (*autoscalerpb.GetClusterResourceStateReply, error) {
	h.version++
	return &autoscalerpb.GetClusterResourceStateReply{ClusterResourceState: &autoscalerpb.ClusterResourceState{
		ClusterResourceStateVersion: h.version, ClusterSessionName: "session_2026-11-20_12-00-00_000000_1", NodeStates: h.nodes,
	}}, nil
}

func (h *rayHead) ReportAutoscalingState(
	context.Context, *autoscalerpb.ReportAutoscalingStateRequest,
) (*autoscalerpb.ReportAutoscalingStateReply, error) {
	return &autoscalerpb.ReportAutoscalingStateReply{}, nil
}

func (h *rayHead) ReportClusterConfig(
	context.Context, *autoscalerpb.ReportClusterConfigRequest,
) (*autoscalerpb.ReportClusterConfigReply, error) {
	return &autoscalerpb.ReportClusterConfigReply{}, nil
}

// InternalKVGet knows one key: whether Ray runs its autoscaler v2.
func (h *rayHead) InternalKVGet(_ context.Context, r *raypb.InternalKVGetRequest) (*raypb.InternalKVGetReply, error) {
	if string(r.GetKey()) == "__autoscaler_v2_enabled" {
		return &raypb.InternalKVGetReply{Status: &raypb.GcsStatus{}, Value: []byte("1")}, nil
	}
	return &raypb.InternalKVGetReply{Status: &raypb.GcsStatus{Code: 17, Message: "Failed to find the key"}}, nil
}

// idleNode returns a node that has been idle for an hour. Nodes have different numbers, and 0 is the head's.
func idleNode(number int, pod, group string, resources map[string]float64) *autoscalerpb.NodeState {
	id := make([]byte, 28)
	id[0], id[1], id[2] = 1, byte(number), byte(number>>8)
	return &autoscalerpb.NodeState{NodeId: id, InstanceId: pod, RayNodeTypeName: group,
		Status: autoscalerpb.NodeStatus_IDLE, IdleDurationMs: 3_600_000,
		TotalResources: resources, AvailableResources: resources}
}
