package gcs

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"

	"heliostat.dev/heliostat/api/proto/raypb"
)

// Client is a client of one Ray head. It is safe for concurrent use.
type Client struct {
	config Config
	conn   *conn

	// mu guards the data of the current session, the last reading and the version of the last report.
	mu         sync.Mutex
	session    session
	last       *reading // nil before the first one; it never changes
	lastReport int64
}

// Dial returns a client for a head. It does not connect: the first call does. It returns an error only if the
// configuration is invalid.
func Dial(config Config) (*Client, error) {
	if _, port, err := net.SplitHostPort(config.Address); err != nil || port == "" {
		return nil, fmt.Errorf("dialing Ray head: address %q: want \"ip:port\"", config.Address)
	}
	config.Timeout, config.MaxMessage = cmp.Or(config.Timeout, DefaultTimeout), cmp.Or(config.MaxMessage, maxMessage)
	config.TLS = tlsFor(config.TLS, config.Address)
	return &Client{config: config, conn: newConn(config)}, nil
}

// Close closes the connection. Calls in progress fail.
func (c *Client) Close() error { return c.conn.Close() }

// kvGet reads one key of Ray's key-value store. A missing key is not an error.
func (c *Client) kvGet(ctx context.Context, namespace, key string) (value []byte, found bool, err error) {
	request := &raypb.InternalKVGetRequest{Namespace: []byte(namespace), Key: []byte(key)}
	reply := &raypb.InternalKVGetReply{}
	err = c.list(ctx, raypb.InternalKVGcsService_InternalKVGet_FullMethodName, request, reply)
	if reply.GetStatus().GetCode() == codeNotFound {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading key %q: %w", key, err)
	}
	return reply.GetValue(), true, nil
}

// codeNotFound is the status of Ray for a key that is missing (ray: src/ray/common/status.h).
const codeNotFound = 17
