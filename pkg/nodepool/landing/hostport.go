package landing

import (
	"cmp"
	"slices"
)

// HostPort is a port in the network of the node itself. Two pods that take the same one do not fit on one node
// (docs/reference/facts.md#ports-of-the-node).
type HostPort struct {
	// IP is the address on which the pod listens; empty or 0.0.0.0 means all of them.
	IP string
	// Protocol is TCP if it is empty.
	Protocol string
	Port     int64
}

// sharesPort reports whether both pods take the same port of a node, as the scheduler's filter NodePorts decides it.
func (n *Neighbors) sharesPort(other *Neighbors) bool {
	return slices.ContainsFunc(n.HostPorts, func(port HostPort) bool {
		return slices.ContainsFunc(other.HostPorts, port.conflicts)
	})
}

func (p HostPort) conflicts(other HostPort) bool {
	const all, standard = "0.0.0.0", "TCP"
	ip, otherIP := cmp.Or(p.IP, all), cmp.Or(other.IP, all)
	return p.Port == other.Port && cmp.Or(p.Protocol, standard) == cmp.Or(other.Protocol, standard) &&
		(ip == otherIP || ip == all || otherIP == all)
}
