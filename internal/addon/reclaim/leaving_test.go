package reclaim

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// failing has a giver that cannot be read.
type failing struct {
	addon.Loop
	err error
}

func (f failing) Cluster(context.Context, nodepool.ClusterKey) (nodepool.Cluster, error) {
	return nodepool.Cluster{}, f.err
}

// The workers of a giver that cannot be read may still go, so the reservation holds. One that is gone has none.
func TestAGiverThatCannotBeReadMayStillGive(t *testing.T) {
	for err, want := range map[error]bool{
		errors.New("503"): true, fmt.Errorf("reading: %w", nodepool.ErrGone): false, error(nil): false,
	} {
		f := &feature{market: New(nil, Settings{}), loop: failing{err: err}}
		f.market.members[nodepool.ClusterKey{Name: "low"}] = &member{}
		if _, _, unread := f.leaving(t.Context(), []nodepool.ClusterKey{{Name: "low"}, {Name: "gone"}}); unread != want {
			t.Errorf("%v: unread is %v", err, unread)
		}
	}
}
