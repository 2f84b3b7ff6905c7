package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/shards"
)

// newShards prepares the member that this process is. Its times are those of the leader lease, for the same reasons.
func newShards(m *Manager) (*shards.Shards, error) {
	client, err := coordinationv1.NewForConfig(naming(m.config, "shards"))
	if err != nil {
		return nil, fmt.Errorf("connecting for Leases: %w", err)
	}
	return shards.New(shards.Config{
		Client:    client,
		Namespace: m.options.LeaseNamespace,
		Group:     m.options.LeaseName,
		Address:   m.options.Address,
		Most:      m.options.MostShards,
		Timing:    shards.Timing{Lease: leaseDuration, Deadline: renewDeadline},
		Retry:     retryPeriod,
		Clusters:  m.divisible,
		Changed:   m.Enqueue,
		Logger:    m.options.Logger,
	}), nil
}

// awaitShards waits, as the leader, until no shard may write any more.
func (m *Manager) awaitShards(ctx context.Context) error {
	if m.lease == nil {
		return nil
	}
	members, err := newShards(m)
	if err == nil {
		members.AwaitEnd(ctx)
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
func (m *Manager) Shards() *shards.Shards { return m.shards }

// OwnKeys lists the RayClusters that this process decides about.
func (m *Manager) OwnKeys() ([]nodepool.ClusterKey, error) {
	keys, err := m.Keys()
	if m.shards != nil {
		keys = slices.DeleteFunc(keys, func(key nodepool.ClusterKey) bool { return !m.shards.Owns(key) })
	}
	return keys, err
}
