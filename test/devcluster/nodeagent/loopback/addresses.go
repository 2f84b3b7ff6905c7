package loopback

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// ErrNoAddress means that all addresses of the block are in use.
var ErrNoAddress = errors.New("no free address")

// Addresses allocates the loopback addresses of one block. A released address goes to the end of the queue and is
// reused after all others, so a client that still uses the address of a deleted pod does not reach a new pod.
type Addresses struct {
	block netip.Prefix

	mu   sync.Mutex // guards free
	free []netip.Addr
}

// NewAddresses parses a block such as 127.1.2.0/24. The first and the last address of the block are reserved.
func NewAddresses(cidr string) (*Addresses, error) {
	block, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, fmt.Errorf("reading pod address block %q: %w", cidr, err)
	}
	block = block.Masked()
	if !block.Addr().Is4() || !block.Addr().IsLoopback() || block.Bits() < 16 || block.Bits() > 29 {
		return nil, fmt.Errorf("reading pod address block %q: want a block in 127.0.0.0/8 between /16 and /29", cidr)
	}
	a := &Addresses{block: block}
	for ip := block.Addr().Next(); block.Contains(ip.Next()); ip = ip.Next() {
		a.free = append(a.free, ip)
	}
	return a, nil
}

// Allocate returns the address that has been free for the longest time.
func (a *Addresses) Allocate() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.free) == 0 {
		return "", fmt.Errorf("allocating an address of %s: %w", a.block, ErrNoAddress)
	}
	ip := a.free[0]
	a.free = a.free[1:]
	return ip.String(), nil
}

// Release returns an address to the pool. It ignores addresses outside the block.
func (a *Addresses) Release(address string) {
	ip, err := netip.ParseAddr(address)
	if err != nil || !a.block.Contains(ip) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = append(a.free, ip)
}
