package api

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"testing"
)

// memNetwork is a network in memory with one listener. In a synctest bubble, only waiting takes time on it: tests can
// check timeouts of seconds and hours exactly, however slow the machine is.
type memNetwork struct {
	calls  chan net.Conn
	closed chan struct{}
	close  func()
}

// newMemNetwork returns a network without a server.
func newMemNetwork() *memNetwork {
	closed := make(chan struct{})
	return &memNetwork{calls: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

// Accept waits for the next connection.
func (n *memNetwork) Accept() (net.Conn, error) {
	select {
	case c := <-n.calls:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the listener.
func (n *memNetwork) Close() error { n.close(); return nil }

// Addr returns the address of both ends.
func (n *memNetwork) Addr() net.Addr { return memAddress{} }

// memAddress is the address of both ends.
type memAddress struct{}

func (memAddress) Network() string { return "tcp" }

func (memAddress) String() string { return "127.0.0.1:8090" }

// memEnd is one end of a connection.
type memEnd struct{ net.Conn }

func (memEnd) LocalAddr() net.Addr { return memAddress{} }

func (memEnd) RemoteAddr() net.Addr { return memAddress{} }

// Dial connects to the listener.
func (n *memNetwork) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case n.calls <- memEnd{there}:
		return memEnd{here}, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Transport returns a transport over the network, with TLS if config is not nil.
func (n *memNetwork) Transport(t *testing.T, config *tls.Config) *http.Transport {
	t.Helper()
	transport := &http.Transport{DialContext: n.Dial, TLSClientConfig: config, ForceAttemptHTTP2: config != nil}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// Serve runs a server on the network until the test ends.
func (n *memNetwork) Serve(t *testing.T, server *http.Server) {
	t.Helper()
	var served sync.WaitGroup
	served.Go(func() {
		if server.TLSConfig != nil {
			_ = server.ServeTLS(n, "", "") // returns after Close
			return
		}
		_ = server.Serve(n)
	})
	t.Cleanup(func() { server.Close(); served.Wait() })
}

// servingInMemory returns a network on which a handler serves.
func servingInMemory(t *testing.T, handler http.HandlerFunc) *memNetwork {
	t.Helper()
	n := newMemNetwork()
	n.Serve(t, &http.Server{Handler: handler})
	return n
}
