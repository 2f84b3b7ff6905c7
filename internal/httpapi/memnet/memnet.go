// Package memnet is a network in memory for tests of HTTP servers and clients. It must not be imported by anything but tests.
package memnet

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Network is a network in memory with one listener. In a bubble of testing/synctest, only what waits takes time on it: limits of seconds
// and hours are the product's own, and a slow machine cannot exceed them.
type Network struct {
	calls  chan net.Conn
	closed chan struct{}
	close  func()
}

// New returns a network on which nothing is served yet.
func New() *Network {
	closed := make(chan struct{})
	return &Network{calls: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

// Accept waits for the next connection.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.calls:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener.
func (n *Network) Close() error { n.close(); return nil }

// Addr returns the address of both ends.
func (n *Network) Addr() net.Addr { return address{} }

// address is the address of both ends.
type address struct{}

func (address) Network() string { return "tcp" }

func (address) String() string { return "127.0.0.1:8090" }

// end is one end of a connection on a wire.
type end struct{ net.Conn }

func (end) LocalAddr() net.Addr { return address{} }

func (end) RemoteAddr() net.Addr { return address{} }

// Dial connects to whoever listens.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case n.calls <- end{there}:
		return end{here}, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Transport calls over the wire, with TLS where config is not nil.
func (n *Network) Transport(t *testing.T, config *tls.Config) *http.Transport {
	t.Helper()
	transport := &http.Transport{DialContext: n.Dial, TLSClientConfig: config, ForceAttemptHTTP2: config != nil}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// Serve answers calls over the wire until the test ends.
func (n *Network) Serve(t *testing.T, server *http.Server) {
	t.Helper()
	var served sync.WaitGroup
	served.Go(func() {
		if server.TLSConfig != nil {
			_ = server.ServeTLS(n, "", "") // ends by Close
			return
		}
		_ = server.Serve(n)
	})
	t.Cleanup(func() { server.Close(); served.Wait() })
}

// Serving serves a handler on a wire.
func Serving(t *testing.T, handler http.HandlerFunc) *Network {
	t.Helper()
	n := New()
	n.Serve(t, &http.Server{Handler: handler})
	return n
}
