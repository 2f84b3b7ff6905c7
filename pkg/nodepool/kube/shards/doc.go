// Package shards divides RayClusters among the members of a fleet of Heliostats, so that one member at a time may act
// on each (docs/design/0007-shards.md).
//
// Member and Holdings are the protocol alone: a member is a value that is given what was written, what was read and
// when, and says what to write next and what it may act on. They must not call anything, read a clock, or know
// Kubernetes: that lets a test explore the protocol in all orders of events. All their times are durations since one
// moment of the process, by its monotonic clock. Those of two processes are never compared.
//
// Shards carries out the protocol with one Lease for each member: it renews its own, reads the others, and removes
// those whose members have ended. It knows which RayClusters this process may write to, and under which term. It must
// not read or write anything but Leases, and must not decide about RayClusters.
package shards
