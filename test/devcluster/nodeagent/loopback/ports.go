package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The range is below the ephemeral ports of the kernel (32768 and up, from which Ray takes its random ports) and above
// the registered services that a development machine is likely to run.
const (
	firstPort = 20000
	lastPort  = 31999
)

// Ports are the ports of one pod by purpose. A container that restarts gets the same ports again.
type Ports struct {
	mu     sync.Mutex // guards byName
	byName map[string]string
}

// Port returns the port with this name. The first call with a name picks a port that is free on all addresses.
func (p *Ports) Port(name string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if port, ok := p.byName[name]; ok {
		return port, nil
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	if p.byName == nil {
		p.byName = map[string]string{}
	}
	p.byName[name] = strconv.Itoa(port)
	return p.byName[name], nil
}

// freePort returns a port on which no program of the machine listens. Another program can still take the port before
// the caller uses it.
func freePort() (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("closing the listener that tries a port: %w", err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("finding a free port between %d and %d: 200 random ports are in use", firstPort, lastPort)
}
