package requests

import (
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TooManyRequests is the code of the finding that requests for a RayCluster do not count, because too many of their
// namespace come before them.
const TooManyRequests = "too-many-requests"

// excessLasts is how long it is known which requests do not count, if no request changes: leases end.
const excessLasts = time.Second

// excess is the requests of a namespace that do not count because nodepool.MaxRequests valid ones come before them, by
// name, and until which uptime that is known.
type excess struct {
	names map[string]bool
	until time.Duration
}

// withAdmission returns a request with the grace of its lease, and whether it is too many. The caller holds mu.
func (s *Store) withAdmission(r nodepool.OwnedRequest) nodepool.OwnedRequest {
	r = s.withGrace(r)
	r.TooMany = s.excess(r.Cluster.Namespace)[r.ID]
	return r
}

// excess returns the names of the requests of a namespace that are too many. It depends on the objects and the clock
// alone, so it is the same after a restart and on another replica. The caller holds mu.
func (s *Store) excess(namespace string) map[string]bool {
	if len(s.objects[namespace]) <= nodepool.MaxRequests {
		return nil
	}
	if known, is := s.beyond[namespace]; is && s.uptime() < known.until {
		return known.names
	}
	now := s.now()
	var valid []nodepool.OwnedRequest
	for _, r := range s.objects[namespace] {
		if r := s.withGrace(*r); r.Valid(now) {
			valid = append(valid, r)
		}
	}
	found := excess{map[string]bool{}, s.uptime() + excessLasts}
	if len(valid) > nodepool.MaxRequests {
		slices.SortFunc(valid, func(a, b nodepool.OwnedRequest) int { return a.Before(&b.Owned) })
		for i := range valid[nodepool.MaxRequests:] {
			found.names[valid[nodepool.MaxRequests+i].ID] = true
		}
	}
	s.beyond[namespace] = found
	return found.names
}

// addExcess reports how many requests for a RayCluster are too many.
func addExcess(cluster *nodepool.Cluster) {
	n := 0
	for i := range cluster.Owned {
		if cluster.Owned[i].TooMany {
			n++
		}
	}
	if n > 0 {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code:     TooManyRequests,
			Severity: raydemand.Warning,
			Object:   "RayCluster " + cluster.Key.String(),
			Seen:     fmt.Sprintf("%d of %d requests of owners do not count", n, len(cluster.Owned)),
			Why: fmt.Sprintf("%d requests of a namespace count, first those with the highest priority, then the "+
				"oldest; idle workers that only the others hold are removed", nodepool.MaxRequests),
			Fix: "delete ResourceRequests that nobody needs",
		})
	}
}
