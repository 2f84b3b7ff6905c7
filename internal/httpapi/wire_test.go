package httpapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"heliostat.dev/heliostat/internal/simray/certs"
)

// wire is a network in memory with one listener. Inside a bubble of testing/synctest nothing takes time on it but what waits, so the limits of
// hours and seconds are the product's own, and a slow machine cannot exceed them.
type wire struct {
	calls chan net.Conn
	ended chan struct{}
	end   func()
}

func newWire() *wire {
	ended := make(chan struct{})
	return &wire{calls: make(chan net.Conn), ended: ended, end: sync.OnceFunc(func() { close(ended) })}
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.calls:
		return c, nil
	case <-w.ended:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error   { w.end(); return nil }
func (w *wire) Addr() net.Addr { return wireAddr{} }

// wireAddr is the address of both ends.
type wireAddr struct{}

func (wireAddr) Network() string { return "tcp" }
func (wireAddr) String() string  { return "127.0.0.1:8090" }

// wired is one end of a connection on a wire.
type wired struct{ net.Conn }

func (wired) LocalAddr() net.Addr  { return wireAddr{} }
func (wired) RemoteAddr() net.Addr { return wireAddr{} }

// dial connects to whoever listens.
func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case w.calls <- wired{there}:
		return wired{here}, nil
	case <-w.ended:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// transport calls over the wire, with TLS where config is not nil.
func (w *wire) transport(t *testing.T, config *tls.Config) *http.Transport {
	t.Helper()
	transport := &http.Transport{DialContext: w.dial, TLSClientConfig: config, ForceAttemptHTTP2: config != nil}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// serve answers calls over the wire until the test ends.
func (w *wire) serve(t *testing.T, server *http.Server) {
	t.Helper()
	var served sync.WaitGroup
	served.Go(func() {
		if server.TLSConfig != nil {
			_ = server.ServeTLS(w, "", "") // ends by Close
			return
		}
		_ = server.Serve(w)
	})
	t.Cleanup(func() { server.Close(); served.Wait() })
}

// wiredServer serves on a wire as NewServer does, with all its limits.
func wiredServer(t *testing.T, change func(*Config)) (*wire, *server) {
	t.Helper()
	w := newWire()
	config := Config{Access: &fakeAccess{}, Fleet: fakeFleet{}, Requests: newWorld(t).requests}
	change(&config)
	running, s, err := newServer(config)
	if err != nil {
		t.Fatal(err)
	}
	w.serve(t, running)
	return w, s
}

// handling serves a handler on a wire.
func handling(t *testing.T, handler http.HandlerFunc) *wire {
	t.Helper()
	w := newWire()
	w.serve(t, &http.Server{Handler: handler})
	return w
}

// aliceGets makes a call with alice's token; it may bring a stream.
func aliceGets(t *testing.T, through http.RoundTripper, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer alice")
	response, err := (&http.Client{Transport: through}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// bothWays runs a test in a bubble twice: over HTTP/1.1 in the clear, and over TLS and HTTP/2. It is given where to call, and the two ends'
// settings of TLS, nil in the clear.
func bothWays(t *testing.T, test func(t *testing.T, url string, ours, theirs *tls.Config)) {
	t.Run("in the clear", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, "http://127.0.0.1", nil, nil) })
	})
	t.Run("over TLS", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := tlsOf(t)
			test(t, "https://127.0.0.1", ours, theirs)
		})
	})
}

// tlsOf are the two ends' settings of TLS for 127.0.0.1.
func tlsOf(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	authority := certs.NewAuthority(t)
	server = authority.ServerTLS(t, authority.Issue(t, "127.0.0.1"))
	server.ClientAuth = tls.NoClientCert
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM)
	return server, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
}
