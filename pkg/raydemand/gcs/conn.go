package gcs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// conn is a connection to a head, for one call at a time. It connects when a call needs it. A connection of the gRPC
// library keeps five goroutines and ten times as much memory while it waits (BenchmarkIdleConnections); this one keeps
// its socket. It is safe for concurrent use: calls wait for one another.
type conn struct {
	config Config
	place  chan struct{} // has a token while a call is made

	// mu guards net and closed; link belongs to the call that has the place.
	mu     sync.Mutex
	net    net.Conn
	closed bool
	link   *link // nil if there is no connection, or none that can be used again
}

func newConn(config Config) *conn { return &conn{config: config, place: make(chan struct{}, 1)} }

// Invoke makes a unary call. Its errors are those of gRPC. It calls again on a new connection, once, if the head has
// refused to begin the call, or has ended the connection that was open, which shows only now; all calls of this package
// may be repeated.
func (c *conn) Invoke(ctx context.Context, method string, message proto.Message, reply any) error {
	select {
	case c.place <- struct{}{}:
		defer func() { <-c.place }()
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	token, err := authorization(ctx, c.config.Token)
	if err != nil {
		return status.Error(codes.Unauthenticated, err.Error())
	}
	r := request{method: method, authority: c.config.Address, token: token, secure: c.config.TLS != nil,
		message: message, longest: c.config.MaxMessage}
	for first := true; ; first = false {
		reused := c.link != nil
		if err := c.connect(ctx); err != nil {
			return err
		}
		err := c.call(ctx, r, reply)
		var failed broken
		switch {
		case !errors.As(err, &failed):
			return err
		case ctx.Err() != nil:
			return status.FromContextError(ctx.Err()).Err()
		case !first || !failed.refused && (failed.heard || !reused):
			return status.Errorf(codes.Unavailable, "connection error: %v", failed.error)
		}
	}
}

// broken is an error of the connection, which says nothing of the call; heard and refused are those of the response.
type broken struct {
	error
	heard, refused bool
}

// call makes one call on the connection.
func (c *conn) call(ctx context.Context, r request, reply any) error {
	e := exchanges.Get().(*exchange)
	a, err := e.call(ctx, c.link, r)
	if err != nil || c.link.ends {
		c.disconnect()
	}
	if err != nil {
		return broken{err, a.heard, a.refused}
	}
	defer exchanges.Put(e) // the reply is in it; one that has failed may be in the middle of a frame
	if a.code == codes.OK {
		if err := decodeReply(a.reply, reply); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		return nil
	}
	if a.details != "" {
		a.message += ": " + a.details
	}
	return status.Error(a.code, a.message)
}

// connect connects if there is no connection. Its errors are those of gRPC.
func (c *conn) connect(ctx context.Context) error {
	if c.link != nil {
		return nil
	}
	if ctx.Err() != nil { // or the head would seem to take no connection
		return status.FromContextError(ctx.Err()).Err()
	}
	// Traffic to a pod must not go through an HTTP proxy for the internet. Ray disables the proxy too.
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, "tcp", c.config.Address)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return status.FromContextError(ctx.Err()).Err()
		}
		return status.Errorf(codes.Unavailable, "connection error: %v", err)
	}
	if c.config.TLS != nil {
		secured := tls.Client(socket, c.config.TLS)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			if ctx.Err() != nil {
				return status.FromContextError(ctx.Err()).Err()
			}
			return status.Errorf(codes.Unavailable, "connection error: authentication handshake failed: %v", err)
		}
		socket = secured
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = socket.Close()
		return status.Error(codes.Canceled, "the client is closed")
	}
	c.net, c.link = socket, newLink(socket)
	return nil
}

// disconnect ends the connection; the next call makes a new one.
func (c *conn) disconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.net != nil {
		_ = c.net.Close() // there is nothing to do about a connection that does not close
	}
	c.net, c.link = nil, nil
}

// Close closes the connection. A call in progress fails, and so does each later one.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed = true; c.net == nil {
		return nil
	}
	if err := c.net.Close(); err != nil {
		return fmt.Errorf("closing the connection to %s: %w", c.config.Address, err)
	}
	return nil
}

// tlsFor returns the configuration of TLS for an address, with the protocol that gRPC speaks.
func tlsFor(config *tls.Config, address string) *tls.Config {
	if config == nil {
		return nil
	}
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address) // Validate has looked at it
	}
	return config
}
