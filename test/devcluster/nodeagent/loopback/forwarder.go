package loopback

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Forwarder forwards TCP connections from one address of the machine to another. A pod needs it for a server that
// listens on all addresses: the server gets a port of its own, and clients use the well-known port of the pod's
// address.
type Forwarder struct {
	listener net.Listener
	to       string

	mu     sync.Mutex // guards open and closed
	open   map[net.Conn]struct{}
	closed bool
}

// NewForwarder listens on from and forwards each connection to to.
func NewForwarder(from, to string) (*Forwarder, error) {
	l, err := net.Listen("tcp", from)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", from, err)
	}
	f := &Forwarder{listener: l, to: to, open: map[net.Conn]struct{}{}}
	go f.accept()
	return f, nil
}

func (f *Forwarder) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		go f.serve(conn)
	}
}

func (f *Forwarder) serve(client net.Conn) {
	server, err := net.DialTimeout("tcp", f.to, 5*time.Second)
	if err != nil {
		// The connection is accepted already, so a reset is the closest to "connection refused".
		if tcp, ok := client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		client.Close()
		return
	}
	if !f.track(client, server) {
		client.Close()
		server.Close()
		return
	}
	join(client, server)
	f.mu.Lock()
	delete(f.open, client)
	delete(f.open, server)
	f.mu.Unlock()
}

func (f *Forwarder) track(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range conns {
		f.open[conn] = struct{}{}
	}
	return !f.closed
}

// Close closes the listener and all connections.
func (f *Forwarder) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.listener.Close()
	for conn := range f.open {
		conn.Close()
	}
}

// join copies in both directions until one side ends, and closes both.
func join(a, b io.ReadWriteCloser) {
	var once sync.Once
	closeBoth := func() { a.Close(); b.Close() }
	var both sync.WaitGroup
	for _, pair := range [][2]io.ReadWriteCloser{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // either side can break the connection at any time
			once.Do(closeBoth)
		})
	}
	both.Wait()
}

// ForwardStream connects a stream to an address until one of them ends or ctx is canceled.
func ForwardStream(ctx context.Context, address string, stream io.ReadWriteCloser) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", address, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	join(stream, conn)
	return nil
}
