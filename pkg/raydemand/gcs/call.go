package gcs

import (
	"context"
	"fmt"
	"path"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// call makes one unary call with a deadline and converts its error to one of raydemand's sentinel errors, if one
// matches.
func (c *Client) call(
	ctx context.Context, timeout time.Duration, method string, request proto.Message, reply any,
) error {
	name := path.Base(method)
	bounded, cancel := within(ctx, timeout)
	defer cancel()
	err := c.conn.Invoke(bounded, method, request, reply)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded {
		return fmt.Errorf("calling %s: %w", name, context.Cause(ctx))
	}
	s := status.Convert(err)
	if s.Code() == codes.Unavailable || s.Code() == codes.DeadlineExceeded {
		return fmt.Errorf("calling %s: %w", name, c.unreached(s, timeout))
	}
	said := s.Code().String() + " " + quoted(s.Message())
	if sentinel := sentinels[s.Code()]; sentinel != nil {
		return fmt.Errorf("calling %s: %w: %s", name, sentinel, said)
	}
	return fmt.Errorf("calling %s: the head answered %s", name, said)
}

// sentinels are what answers of heads mean.
var sentinels = map[codes.Code]error{
	codes.Unauthenticated: raydemand.ErrAuth, codes.PermissionDenied: raydemand.ErrAuth,
	codes.Unimplemented:     raydemand.ErrUnsupported,
	codes.ResourceExhausted: raydemand.ErrBadReply, codes.Internal: raydemand.ErrBadReply,
	codes.DataLoss: raydemand.ErrBadReply,
}

// list calls a method that reports errors in its reply too, as all services of the GCS but the autoscaler's do.
func (c *Client) list(
	ctx context.Context, method string, request proto.Message, reply interface{ GetStatus() *raypb.GcsStatus },
) error {
	err := c.call(ctx, c.config.Timeout, method, request, reply)
	if status := reply.GetStatus(); err == nil && status.GetCode() != 0 {
		err = fmt.Errorf("calling %s: the head answered code %d %s", path.Base(method), status.GetCode(),
			quoted(status.GetMessage()))
	}
	return err
}

// within returns ctx with a timeout, or ctx itself if that ends no later: each context costs a reading memory.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= timeout {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

func quoted(text string) string { return fmt.Sprintf("%q", shortened(text)) }
