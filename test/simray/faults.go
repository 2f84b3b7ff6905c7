package simray

import (
	"context"
	"fmt"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
)

// Fault is a fault of a method. The zero value means no fault.
type Fault struct {
	// Delay delays every answer, in real time.
	Delay time.Duration
	// Code and Message replace the answer. For ABORTED, Message is Ray's code name and Text its explanation.
	Code          codes.Code
	Message, Text string
	// Garbage replaces the bytes of the answer.
	Garbage []byte
	// Lie changes the state before the head sends it. It applies only to GetClusterResourceState.
	Lie func(*autoscalerpb.ClusterResourceState)
}

// SetFault sets the fault of a method. The method is named without its service. The zero Fault removes it. The fault of
// method "" applies to all methods without a fault of their own.
func (h *Head) SetFault(method string, fault Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if fault.none() {
		delete(h.faults, method)
		return
	}
	h.faults[method] = fault
}

func (f Fault) none() bool {
	return f.Delay == 0 && f.Code == codes.OK && f.Garbage == nil && f.Lie == nil
}

// SetPassive makes the head the passive head of a leader election. It then answers every call with GcsPassive.
func (h *Head) SetPassive(passive bool) {
	fault := Fault{}
	if passive {
		fault = Fault{Code: codes.Aborted, Message: "GcsPassive", Text: "This GCS is not the leader."}
	}
	h.SetFault("", fault)
}

func (h *Head) fault(method string) Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	if fault, ok := h.faults[method]; ok {
		return fault
	}
	return h.faults[""]
}

// intercept checks the token, then the cluster id, as Ray does. Then it applies the fault of the method.
func (h *Head) intercept(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	method := path.Base(info.FullMethod)
	if err := h.authorize(ctx, method); err != nil {
		return nil, err
	}
	fault := h.fault(method)
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	if fault.Code != codes.OK {
		return nil, rayError(ctx, fault.Code, fault.Message, fault.Text)
	}
	if asked, is := request.(*autoscalerpb.GetClusterResourceStateRequest); is && fault.Lie == nil {
		if wire := h.encodedState(asked); wire != nil && fault.Garbage == nil {
			return rawBytes(wire), nil
		}
	}
	reply, err := handler(ctx, request)
	if err != nil {
		return nil, err
	}
	if fault.Garbage != nil {
		return rawBytes(fault.Garbage), nil
	}
	if state, ok := reply.(*autoscalerpb.GetClusterResourceStateReply); ok && fault.Lie != nil {
		fault.Lie(state.GetClusterResourceState())
	}
	return reply, nil
}

func (h *Head) authorize(ctx context.Context, method string) error {
	header, _ := metadata.FromIncomingContext(ctx)
	version := h.options.Version
	if h.options.Token != "" && version.hasTokens() {
		if got := header.Get("authorization"); len(got) != 1 || got[0] != "Bearer "+h.options.Token {
			return status.Error(codes.Unauthenticated, "InvalidAuthToken: Authentication token is missing or incorrect")
		}
	}
	ids := header.Get("ray_cluster_id")
	if len(ids) == 0 || ids[0] == h.ClusterID() || method == "GetClusterId" && ids[0] == nilClusterID {
		return nil
	}
	const text = "WrongClusterID: Perhaps the client is accessing GCS after it has restarted."
	if version == Ray240 {
		return rayError(ctx, codes.Aborted, "AuthError", text)
	}
	return status.Error(codes.Unauthenticated, text)
}

// rayError returns an error in the form of Ray's handlers: the name of the code is the message, and the text is in a
// trailer.
func rayError(ctx context.Context, code codes.Code, message, text string) error {
	if text != "" {
		if err := grpc.SetTrailer(ctx, metadata.Pairs("grpc-status-details-bin", text)); err != nil {
			return fmt.Errorf("setting trailer: %w", err)
		}
	}
	return status.Error(code, message)
}

// rawBytes is a reply that the head sends unchanged.
type rawBytes []byte

type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) {
	if raw, ok := v.(rawBytes); ok {
		return raw, nil
	}
	return proto.Marshal(v.(proto.Message))
}

// Unmarshal returns the same error as Ray if a request is not valid protobuf.
func (rawCodec) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }

func (rawCodec) Name() string { return "proto" }
