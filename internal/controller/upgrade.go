package controller

import (
	"context"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/upgrade"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// lookAtOlder keeps track of an upgrade of a RayService, if the policy of the newer RayCluster keeps room for it. A
// goroutine reads Serve, because its head may be slow, and no decision waits for it: a later cycle takes the result.
func (c *Controller) lookAtOlder(ctx context.Context, r *record, v *observation.View) {
	select {
	case got := <-r.olderRead:
		r.olderRead = nil
		r.memory.Upgrade.Read(v.Now, got.from, got.deployments, got.err)
	default: // a nil channel never answers
	}
	r.memory.Upgrade.Observe(v.Now, &v.Cluster, v.Live(), &v.State)
	if c.config.Serves == nil || v.Mode == nodepool.Off || r.olderRead != nil {
		return
	}
	from := r.memory.Upgrade.Due(v.Now)
	if from == nil {
		return
	}
	select {
	case c.olderReads <- struct{}{}:
	default:
		return // too many at once; the next cycle tries again
	}
	r.memory.Upgrade.Asked(v.Now)
	result := make(chan olderRead, 1)
	r.olderRead = result
	ctx = context.WithoutCancel(ctx) // a shard ends the context of a cycle with the cycle
	c.reading.Go(func() {
		defer func() { <-c.olderReads }()
		result <- c.readOlder(ctx, *from)
	})
}

// readOlder reads one older RayCluster. A panic is an error here: nothing above this goroutine recovers it, and it must
// not end the process that serves all RayClusters.
func (c *Controller) readOlder(ctx context.Context, from nodepool.ClusterKey) (got olderRead) {
	got.from = from
	defer func() {
		if cause := recover(); cause != nil {
			got.err = fmt.Errorf("reading it panicked: %v", cause)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	older, err := c.kube.Cluster(ctx, from)
	if err != nil {
		got.err = err
		return got
	}
	got.deployments, got.err = c.config.Serves(ctx, older)
	return got
}

// upgradeStands bounds how long a decision stands during an upgrade: until the result of a reading is there, or the
// next reading is due.
func (r *record) upgradeStands(now time.Time, long time.Duration) time.Duration {
	switch {
	case r.olderRead != nil:
		return min(long, time.Second)
	case r.memory.Upgrade.Active(now):
		return min(long, upgrade.ReadEvery)
	}
	return long
}
