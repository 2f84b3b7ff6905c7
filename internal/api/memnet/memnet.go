// Package memnet is a network in memory for tests of HTTP servers and clients. Only tests may import it.
package memnet

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Network is a network in memory with one listener. In a synctest bubble, only waiting takes time on it: tests can
// check timeouts of seconds and hours exactly, however slow the machine is.
type Network struct {
	calls  chan net.Conn
	closed chan struct{}
	close  func()
}

// New returns a network without a server.
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

// Close closes the listener.
func (n *Network) Close() error { n.close(); return nil }

// Addr returns the address of both ends.
func (n *Network) Addr() net.Addr { return address{} }

// address is the address of both ends.
type address struct{}

func (address) Network() string { return "tcp" }

func (address) String() string { return "127.0.0.1:8090" }

// end is one end of a connection.
type end struct{ net.Conn }

func (end) LocalAddr() net.Addr { return address{} }

func (end) RemoteAddr() net.Addr { return address{} }

// Dial connects to the listener.
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

// Transport returns a transport over the network, with TLS if config is not nil.
func (n *Network) Transport(t *testing.T, config *tls.Config) *http.Transport {
	t.Helper()
	transport := &http.Transport{DialContext: n.Dial, TLSClientConfig: config, ForceAttemptHTTP2: config != nil}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// Serve runs a server on the network until the test ends.
func (n *Network) Serve(t *testing.T, server *http.Server) {
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

// Serving returns a network on which a handler serves.
func Serving(t *testing.T, handler http.HandlerFunc) *Network {
	t.Helper()
	n := New()
	n.Serve(t, &http.Server{Handler: handler})
	return n
}
