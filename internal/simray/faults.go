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

// Fault is how a method misbehaves. The zero value is none.
type Fault struct {
	// Delay holds every answer back, in real time.
	Delay time.Duration
	// Code and Message replace the answer; for ABORTED, Message is Ray's code name and Text its explanation.
	Code          codes.Code
	Message, Text string
	// Garbage replaces the answer's bytes.
	Garbage []byte
	// Lie changes the state before it is sent (GetClusterResourceState alone).
	Lie func(*autoscalerpb.ClusterResourceState)
}

// SetFault makes one method, named without its service, misbehave until it is set to the zero Fault. The method ""
// stands for all that have none of their own.
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

// SetPassive makes the head the passive one of a leader election: every call is refused with GcsPassive.
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

// intercept checks the token first and the cluster id second, as Ray does, and then injects the method's fault.
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

// rayError answers as Ray's handlers do: the code's name as the message, the text in a trailer.
func rayError(ctx context.Context, code codes.Code, message, text string) error {
	if text != "" {
		if err := grpc.SetTrailer(ctx, metadata.Pairs("grpc-status-details-bin", text)); err != nil {
			return fmt.Errorf("setting trailer: %w", err)
		}
	}
	return status.Error(code, message)
}

// rawBytes is a reply sent as it is.
type rawBytes []byte

type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) {
	if raw, ok := v.(rawBytes); ok {
		return raw, nil
	}
	return proto.Marshal(v.(proto.Message))
}

// Unmarshal answers what Ray answers to a request that is no protobuf.
func (rawCodec) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }

func (rawCodec) Name() string { return "proto" }
