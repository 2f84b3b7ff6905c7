package engine

import (
	"errors"
	"fmt"
	"sync/atomic"

	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

// readiness is not ready until every RayCluster and pod has been seen once. A replica that waits for the lease is
// ready: it can take over.
type readiness struct {
	manager atomic.Pointer[kube.Manager] // nil until the API server has answered
}

func (r *readiness) check() error {
	manager := r.manager.Load()
	if manager == nil {
		return errors.New("the API server has not answered yet")
	}
	if manager.Ready() {
		return nil
	}
	if err := manager.WatchError(); err != nil {
		return fmt.Errorf("the caches of RayClusters and pods are not filled: %w", err)
	}
	return errors.New("the caches of RayClusters and pods are not filled yet")
}

// leads reports whether this process is the leader.
func (r *readiness) leads() bool {
	manager := r.manager.Load()
	return manager != nil && manager.Leading()
}

// division returns what this process knows of the shards; false without shards, and before it takes part.
func (r *readiness) division() (telemetry.Division, bool) {
	manager := r.manager.Load()
	if manager == nil || manager.Shards() == nil {
		return telemetry.Division{}, false
	}
	member := manager.Shards()
	known := member.View()
	return telemetry.Division{Shard: member.ID(), Shards: known.Shards, Unowned: known.Unowned, ReadAge: known.ReadAge},
		known.Started
}
