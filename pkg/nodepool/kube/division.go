package kube

import (
	"context"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// awaitShards waits, as the leader, until no shard may write any more.
func (m *Manager) awaitShards(ctx context.Context) error {
	if m.lease == nil {
		return nil
	}
	client, err := leaseClient(m.config, "shards")
	if err == nil {
		newShards(client, m.options).awaitEnd(ctx)
	}
	return err
}

// WatchOthers sets what runs in place of a cycle for the RayClusters of other shards. Call it before Start.
func (m *Manager) WatchOthers(watch func(context.Context, nodepool.ClusterKey)) { m.others = watch }

// divided returns a reconcile that runs the cycles of the RayClusters of this shard only.
func (m *Manager) divided(reconcile Reconcile) Reconcile {
	return func(ctx context.Context, key nodepool.ClusterKey, quiet bool) time.Duration {
		inside, leave, mine := m.shards.Enter(ctx, key)
		if mine {
			defer leave()
			return reconcile(inside, key, quiet)
		}
		if m.others != nil {
			m.others(ctx, key)
		}
		return 0
	}
}

// divisible lists the RayClusters that need an owner: those that exist, and those that requests are for.
func (m *Manager) divisible() ([]nodepool.ClusterKey, error) {
	keys, err := m.Keys()
	if err != nil {
		return keys, err
	}
	known := make(map[nodepool.ClusterKey]bool, len(keys))
	for _, key := range keys {
		known[key] = true
	}
	if m.requests == nil {
		return keys, nil
	}
	for _, key := range m.requests.Clusters() {
		if !known[key] {
			known[key] = true
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Shards returns the member that this process is; nil if one process decides about all RayClusters.
func (m *Manager) Shards() *Shards { return m.shards }

// OwnKeys lists the RayClusters that this process decides about.
func (m *Manager) OwnKeys() ([]nodepool.ClusterKey, error) {
	keys, err := m.Keys()
	if m.shards != nil {
		keys = slices.DeleteFunc(keys, func(key nodepool.ClusterKey) bool { return !m.shards.Owns(key) })
	}
	return keys, err
}
