package shards

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// awaitPause is the pause between two readings of AwaitEnd.
const awaitPause = 250 * time.Millisecond

// AwaitEnd returns when no member has a Lease, or ctx ends. A leader calls it once it has its own Lease: its claim is
// stored then, so each member that reads later leaves all RayClusters to it, and those that have read before still have
// their Leases. It removes the Lease of a member that has ended, as members do with one another. Without the right to
// list Leases it does not wait.
func (s *Shards) AwaitEnd(ctx context.Context) {
	for waited := false; ; waited = true {
		records, err := s.members(ctx)
		switch {
		case apierrors.IsForbidden(err):
			s.config.Logger.Warn("this leader may not list Leases, so it does not wait for shards that still run; "+
				"allow list and delete of leases in its namespace", "namespace", s.config.Namespace)
			return
		case err == nil && len(records) == 0:
			return
		case err == nil:
			s.mu.Lock()
			s.member.Read(records, s.now())
			s.mu.Unlock()
			s.removeExpired(ctx)
		}
		if !waited {
			s.config.Logger.Info("this leader waits until shards have ended", "shards", len(records), "error", err)
		}
		if !reflector.Sleep(ctx, awaitPause) {
			return
		}
	}
}
