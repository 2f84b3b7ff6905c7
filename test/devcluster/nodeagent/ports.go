package nodeagent

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// Ports that are given out lie below the ones the kernel picks from (32768 and up, where Ray's own random ports come
// from) and above the registered services that a development machine is likely to run.
const (
	firstPort = 20000
	lastPort  = 31999
)

// freePort returns a port that nobody on the machine listens on. It is free when it is looked for; another program
// may still take it before its user does.
func freePort() (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("closing the trial listener: %w", err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("finding a free port between %d and %d: all that were tried are in use", firstPort, lastPort)
}

// ports keeps what a pod was given, by what it is for: a container that starts again finds its ports unchanged.
type ports struct {
	mu    sync.Mutex // guards given
	given map[string]string
}

func (p *ports) port(name string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if port, ok := p.given[name]; ok {
		return port, nil
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	if p.given == nil {
		p.given = map[string]string{}
	}
	p.given[name] = strconv.Itoa(port)
	return p.given[name], nil
}

// forwarder leads connections to one address of the machine on to another. A pod needs it for a server that listens
// on all addresses, on a port of its own, instead of on the well-known port of the pod's address.
type forwarder struct {
	listener net.Listener
	to       string

	mu     sync.Mutex // guards open and closed
	open   map[net.Conn]struct{}
	closed bool
}

func newForwarder(from, to string) (*forwarder, error) {
	l, err := net.Listen("tcp", from)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", from, err)
	}
	f := &forwarder{listener: l, to: to, open: map[net.Conn]struct{}{}}
	go f.accept()
	return f, nil
}

func (f *forwarder) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		go f.serve(conn)
	}
}

func (f *forwarder) serve(client net.Conn) {
	server, err := net.DialTimeout("tcp", f.to, 5*time.Second)
	if err != nil {
		// A reset is the nearest to "connection refused" that can be said once a connection is accepted.
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

func (f *forwarder) track(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range conns {
		f.open[conn] = struct{}{}
	}
	return !f.closed
}

// close ends the listener and every connection.
func (f *forwarder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.listener.Close()
	for conn := range f.open {
		conn.Close()
	}
}

// join copies both ways until one side ends, then closes both.
func join(a, b io.ReadWriteCloser) {
	var once sync.Once
	closeBoth := func() { a.Close(); b.Close() }
	var both sync.WaitGroup
	for _, pair := range [][2]io.ReadWriteCloser{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // either end may break the connection at any time
			once.Do(closeBoth)
		})
	}
	both.Wait()
}

// forwardStream connects a stream with a port of an address until either ends or ctx does.
func forwardStream(ctx context.Context, address string, stream io.ReadWriteCloser) error {
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
