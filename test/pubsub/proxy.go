package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// proxy forwards connections to a head, and counts their bytes. It can cut them and it can become silent.
type proxy struct {
	listener net.Listener
	target   string
	bytes    atomic.Int64
	silent   atomic.Bool

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

func startProxy(target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, target: target}
	go p.accept()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		to, err := net.Dial("tcp", p.target)
		if err != nil {
			from.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, from, to)
		p.mu.Unlock()
		go p.forward(from, to)
		go p.forward(to, from)
	}
}

// forward copies until one end closes. A silent proxy reads on and sends nothing, as a network that drops packets.
func (p *proxy) forward(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.bytes.Add(int64(n))
		if n > 0 && !p.silent.Load() {
			_, _ = to.Write(buffer[:n]) // the next read shows a failure
		}
		if err != nil {
			if err == io.EOF || !p.silent.Load() {
				to.Close()
			}
			return
		}
	}
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) close() {
	p.listener.Close()
	p.cut()
}
