// Package shard divides RayClusters among the members of a fleet of Heliostats, so that one member at a time may act on
// each. It is the protocol alone (docs/design/0007-shards.md): a member is a value that is given what was written, what
// was read and when, and says what to write next and what it may act on. The package must not call anything, read a
// clock, or know Kubernetes: that lets a test explore the protocol in all orders of events.
//
// All times are durations since one moment of the process, by its monotonic clock. Those of two processes are never
// compared.
package shard
