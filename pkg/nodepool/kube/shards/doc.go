// Package shards carries out the protocol of package shard with one Lease for each member: it renews its own, reads the
// others, and removes those whose members have ended. It knows which RayClusters this process may write to, and under
// which term. It must not read or write anything but Leases, and must not decide about RayClusters.
package shards
