package engine

import (
	"sync/atomic"
	"time"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

// settleTimeout is how long a RayCluster without a first decision may delay lists: one that cannot be read must not
// hide the others.
const settleTimeout = 15 * time.Second

// Leadership reports whether this process is the leader, and whether its view is complete.
type Leadership struct {
	*kube.Manager
	keys    func() ([]nodepool.ClusterKey, error)
	decided func(nodepool.ClusterKey) bool
	now     func() time.Time
	// came returns when RayClusters of another shard came last, as a number that changes; settledAt is the last one.
	came      func() int64
	settledAt atomic.Int64
	settled   atomic.Bool
	asked     atomic.Int64 // when it was first asked while it led, in nanoseconds; 0 before
}

func newLeadership(manager *kube.Manager, loop *controller.Controller) *Leadership {
	came := func() int64 { return 0 }
	if member := manager.Shards(); member != nil {
		came = member.LastCame
	}
	return &Leadership{
		Manager: manager,
		keys:    manager.OwnKeys,
		now:     time.Now,
		came:    came,
		decided: func(key nodepool.ClusterKey) bool {
			_, known := loop.Decision(key)
			return known
		},
	}
}

// Settled reports whether every RayCluster of this process has a decision. Once true it stays true until RayClusters of
// another shard come: a new RayCluster is missing from lists for a moment.
func (l *Leadership) Settled() bool {
	if came := l.came(); came != l.settledAt.Swap(came) {
		l.settled.Store(false)
		l.asked.Store(0)
	}
	if l.settled.Load() {
		return true
	}
	keys, err := l.keys()
	if err != nil {
		return false
	}
	l.asked.CompareAndSwap(0, l.now().UnixNano())
	for _, key := range keys {
		if !l.decided(key) {
			return l.now().Sub(time.Unix(0, l.asked.Load())) >= settleTimeout
		}
	}
	l.settled.Store(true)
	return true
}
