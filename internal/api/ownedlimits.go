package api

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Limits on the requests of one owner in a namespace. An owner gets at most half of the places, and cannot fill the API
// server with expired requests, which stay for nodepool.ExpiredKept. Each replica counts the requests that it knows, so
// slightly more can exist.
const (
	maxActiveOfOwner = nodepool.MaxRequests / 2
	maxStoredOfOwner = 1000
)

// checkRoom refuses a new or renewed request if there are too many. stored is nil for a new one.
func (s *server) checkRoom(wanted, stored *nodepool.OwnedRequest) error {
	owner := wanted.Owner
	if stored != nil {
		if stored.Valid(s.now()) {
			return nil
		}
		owner = stored.Owner
	}
	namespace := wanted.Cluster.Namespace
	all, err := s.owned().All(namespace)
	if err != nil {
		return err
	}
	storedOfOwner, activeOfOwner, active := 0, 0, 0
	for i := range all {
		isOwn, isActive := all[i].Owner == owner, all[i].Valid(s.now())
		storedOfOwner, activeOfOwner = storedOfOwner+count(isOwn), activeOfOwner+count(isOwn && isActive)
		active += count(isActive)
	}
	detail, owner := "", shorten(owner)
	switch {
	case active >= nodepool.MaxRequests:
		detail = fmt.Sprintf("namespace %s already has %d active requests, and no more than %d of a namespace count: "+
			"delete requests that nobody needs", namespace, active, nodepool.MaxRequests)
	case activeOfOwner >= maxActiveOfOwner:
		detail = fmt.Sprintf("%q already has %d active requests in namespace %s, the limit for one owner", owner,
			activeOfOwner, namespace)
	case stored == nil && storedOfOwner >= maxStoredOfOwner:
		detail = fmt.Sprintf("%q already has %d requests in namespace %s, expired ones included, the limit for one "+
			"owner: delete some, or use their IDs again", owner, storedOfOwner, namespace)
	default:
		return nil
	}
	return &problem{Kind: kindTooManyRequests, Detail: detail}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
