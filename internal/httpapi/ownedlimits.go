package httpapi

import (
	"fmt"

	"heliostat.dev/heliostat/internal/httpapi/problem"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Limits on the requests of one RayCluster. Every plan includes the active requests of all owners, so one owner must
// not take the planning time of all. Each replica counts the requests that it knows, so slightly more can exist.
// Expired requests take part in no plan and only use space in the API server, for nodepool.ExpiredKept; they have a
// limit for each owner.
const (
	maxActiveOfOwner   = 200
	maxStoredOfOwner   = 1000
	maxActiveOfCluster = planner.MaxOwned
)

// checkRoom refuses a new or renewed request if there are too many. stored is nil for a new one.
func (s *server) checkRoom(wanted, stored *nodepool.OwnedRequest) error {
	owner := wanted.Owner
	if stored != nil {
		if s.active(stored) {
			return nil
		}
		owner = stored.Owner
	}
	all, err := s.owned().List(wanted.Cluster)
	if err != nil {
		return err
	}
	storedOfOwner, activeOfOwner, active := 0, 0, 0
	for i := range all {
		isOwn, isActive := all[i].Owner == owner, s.active(&all[i])
		storedOfOwner, activeOfOwner = storedOfOwner+count(isOwn), activeOfOwner+count(isOwn && isActive)
		active += count(isActive)
	}
	detail, owner := "", problem.Shorten(owner)
	switch key := wanted.Cluster; {
	case activeOfOwner >= maxActiveOfOwner:
		detail = fmt.Sprintf(
			"%q already has %d active requests for %s, the limit for one owner", owner, activeOfOwner, key,
		)
	case active >= maxActiveOfCluster:
		detail = fmt.Sprintf("%s already has %d active requests, the limit for one RayCluster", key, active)
	case stored == nil && storedOfOwner >= maxStoredOfOwner:
		detail = fmt.Sprintf("%q already has %d requests for %s, expired ones included, the limit for one owner: "+
			"delete some, or use their IDs again", owner, storedOfOwner, key)
	default:
		return nil
	}
	return &problem.Error{Kind: problem.TooManyRequests, Detail: detail}
}

// active reports whether a request takes part in the plans of its RayCluster.
func (s *server) active(r *nodepool.OwnedRequest) bool { return r.Counts(r.ClusterUID, s.now()) }

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
