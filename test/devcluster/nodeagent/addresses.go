package nodeagent

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// errNoAddress is returned when every address of the block is in use.
var errNoAddress = errors.New("no free address")

// addresses lends the loopback addresses of one block. A returned address goes to the end of the queue, so it comes
// back only after all others: a client that still holds a dead pod's address finds nobody, rather than a new pod.
type addresses struct {
	block netip.Prefix

	mu   sync.Mutex // guards free
	free []netip.Addr
}

// newAddresses reads a block such as 127.1.2.0/24. Its first and last address are not lent.
func newAddresses(cidr string) (*addresses, error) {
	block, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, fmt.Errorf("reading pod address block %q: %w", cidr, err)
	}
	block = block.Masked()
	if !block.Addr().Is4() || !block.Addr().IsLoopback() || block.Bits() < 16 || block.Bits() > 29 {
		return nil, fmt.Errorf("reading pod address block %q: want a part of 127.0.0.0/8 between /16 and /29", cidr)
	}
	a := &addresses{block: block}
	for ip := block.Addr().Next(); block.Contains(ip.Next()); ip = ip.Next() {
		a.free = append(a.free, ip)
	}
	return a, nil
}

// Lend takes the address that has been free for the longest time.
func (a *addresses) Lend() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.free) == 0 {
		return "", fmt.Errorf("lending an address of %s: %w", a.block, errNoAddress)
	}
	ip := a.free[0]
	a.free = a.free[1:]
	return ip.String(), nil
}

// Return gives a lent address back. Anything that is no address of the block is ignored.
func (a *addresses) Return(address string) {
	ip, err := netip.ParseAddr(address)
	if err != nil || !a.block.Contains(ip) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = append(a.free, ip)
}
