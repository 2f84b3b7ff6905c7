package gcs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Status codes of Ray that this package handles (ray: src/ray/common/status.h).
const (
	codeNotFound  = 17
	codeAuthError = 33
	codePassive   = 38
)

// rayTextTrailer holds the message of an ABORTED status, as plain text instead of a google.rpc.Status.
const rayTextTrailer = "grpc-status-details-bin"

// call makes one unary call with a deadline and converts its error to one of raydemand's sentinel errors, if one
// matches.
func call[Q, R any](
	ctx context.Context, c *Client, timeout time.Duration, name string,
	method func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
) (R, error) {
	bounded, cancel := within(ctx, timeout)
	defer cancel()
	var trailer metadata.MD
	reply, err := method(bounded, request, grpc.Trailer(&trailer))
	if err == nil {
		return reply, nil
	}
	if ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded {
		return reply, fmt.Errorf("calling %s: %w", name, context.Cause(ctx))
	}
	if s, ok := status.FromError(err); ok && (s.Code() == codes.Unavailable || s.Code() == codes.DeadlineExceeded) {
		return reply, fmt.Errorf("calling %s: %w", name, c.unreached(s, timeout))
	}
	return reply, fmt.Errorf("calling %s: %w", name, classify(err, strings.Join(trailer.Get(rayTextTrailer), " ")))
}

// within returns ctx with a timeout, or ctx itself if that ends no later: each context costs a reading memory.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= timeout {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// classify maps a gRPC status to a sentinel error. call handles UNAVAILABLE and DEADLINE_EXCEEDED first. The table
// comes from error replies recorded from real heads:
//
//	UNAUTHENTICATED "WrongClusterID: …" (since 2.52)   ErrWrongCluster
//	UNAUTHENTICATED otherwise, PERMISSION_DENIED       ErrAuth
//	ABORTED "AuthError" with "WrongClusterID" (2.40)   ErrWrongCluster
//	ABORTED "GcsPassive"                               ErrPassive
//	ABORTED "Disconnected", "RpcError"                 ErrRayletUnreachable
//	UNIMPLEMENTED                                      ErrUnsupported
//	RESOURCE_EXHAUSTED, INTERNAL, DATA_LOSS            ErrBadReply
//	anything else                                      no sentinel
func classify(err error, text string) error {
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	said := s.Code().String() + " " + quoted(s.Message())
	if text != "" {
		said += ": " + quoted(text)
	}
	sentinel := sentinelOf(s.Code(), s.Message(), text)
	if sentinel == nil {
		return fmt.Errorf("the head answered %s", said)
	}
	return fmt.Errorf("%w: %s", sentinel, said)
}

func sentinelOf(code codes.Code, message, text string) error {
	switch code {
	case codes.Unauthenticated, codes.PermissionDenied:
		return authSentinel(message)
	case codes.Unimplemented:
		return raydemand.ErrUnsupported
	case codes.ResourceExhausted, codes.Internal, codes.DataLoss:
		return raydemand.ErrBadReply
	case codes.Aborted:
		switch message {
		case "AuthError":
			return authSentinel(text)
		case "GcsPassive":
			return raydemand.ErrPassive
		case "Disconnected", "RpcError":
			return raydemand.ErrRayletUnreachable
		}
	}
	return nil
}

func authSentinel(text string) error {
	if strings.HasPrefix(text, "WrongClusterID") {
		return raydemand.ErrWrongCluster
	}
	return raydemand.ErrAuth
}

// statusError returns the error in the status of an OK reply. All services except AutoscalerStateService send one.
func statusError(name string, s *raypb.GcsStatus) error {
	switch s.GetCode() {
	case 0:
		return nil
	case codeAuthError:
		return fmt.Errorf("calling %s: %w: %s", name, authSentinel(s.GetMessage()), quoted(s.GetMessage()))
	case codePassive:
		return fmt.Errorf("calling %s: %w: %s", name, raydemand.ErrPassive, quoted(s.GetMessage()))
	}
	return fmt.Errorf("calling %s: the head answered code %d %s", name, s.GetCode(), quoted(s.GetMessage()))
}

func quoted(text string) string { return fmt.Sprintf("%q", shortened(text)) }
