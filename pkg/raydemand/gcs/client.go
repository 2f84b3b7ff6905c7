package gcs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
)

// Client is a client of one Ray head. It is safe for concurrent use.
type Client struct {
	config     Config
	conn       *grpc.ClientConn
	autoscaler autoscalerpb.AutoscalerStateServiceClient
	nodes      raypb.NodeInfoGcsServiceClient
	kv         raypb.InternalKVGcsServiceClient

	// mu guards the data of the current session, the last reading and the version of the last report.
	mu         sync.Mutex
	session    session
	last       *reading // nil before the first one; it never changes
	lastReport int64
}

// Dial returns a client for a head. It does not connect: the first call does. It returns an error only if the
// configuration is invalid.
func Dial(config Config) (*Client, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("dialing Ray head: %w", err)
	}
	config = config.withDefaults()
	conn, err := grpc.NewClient("passthrough:///"+config.Address, dialOptions(config)...)
	if err != nil {
		return nil, fmt.Errorf("dialing Ray head %s: %w", config.Address, err)
	}
	return &Client{
		config:     config,
		conn:       conn,
		autoscaler: autoscalerpb.NewAutoscalerStateServiceClient(conn),
		nodes:      raypb.NewNodeInfoGcsServiceClient(conn),
		kv:         raypb.NewInternalKVGcsServiceClient(conn),
	}, nil
}

func dialOptions(config Config) []grpc.DialOption {
	transport := insecure.NewCredentials()
	if config.TLS != nil {
		transport = credentials.NewTLS(config.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		// Traffic to a pod must not go through an HTTP proxy for the internet. Ray disables the proxy too.
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(config.MaxMessage), grpc.ForceCodecV2(newBoundedCodec())),
		// A restarted head is available within seconds. By default, gRPC waits up to two minutes before it retries.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: 2 * time.Second},
			MinConnectTimeout: config.Timeout,
		}),
		// Fixed windows disable gRPC's bandwidth estimation. Ray's C++ server counts its pings as strikes (ray #27769).
		// Keepalive stays off for the same reason. It is not needed, because every call has a deadline.
		grpc.WithInitialWindowSize(1 << 20),
		grpc.WithInitialConnWindowSize(1 << 20),
		// A fleet has one connection for each cluster, so buffers are small. The one for reading, which the connection
		// keeps, is for headers: data that is longer is read past it. The one for writing is shared.
		grpc.WithReadBufferSize(1 << 10),
		grpc.WithWriteBufferSize(4 << 10),
	}
	if config.Token != nil {
		options = append(options, grpc.WithPerRPCCredentials(bearer{token: config.Token}))
	}
	return options
}

// Close closes the connection. Calls in progress fail.
func (c *Client) Close() error { return c.conn.Close() }

// kvGet reads one key of Ray's key-value store. A missing key is not an error.
func (c *Client) kvGet(ctx context.Context, namespace, key string) (value []byte, found bool, err error) {
	request := &raypb.InternalKVGetRequest{Namespace: []byte(namespace), Key: []byte(key)}
	reply, err := call(ctx, c, c.config.Timeout, "InternalKVGet", c.kv.InternalKVGet, request)
	if err != nil {
		return nil, false, fmt.Errorf("reading key %q: %w", key, err)
	}
	if reply.GetStatus().GetCode() == codeNotFound {
		return nil, false, nil
	}
	if err := statusError("InternalKVGet", reply.GetStatus()); err != nil {
		return nil, false, fmt.Errorf("reading key %q: %w", key, err)
	}
	return reply.GetValue(), true, nil
}
