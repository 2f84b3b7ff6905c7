package search

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/fairshare"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MaxOwned and MaxOwnedShapes limit how many requests of owners one plan takes, and how many shapes they have in total.
// REST refuses more requests than that for one RayCluster, but other ways of creating the objects have no limit.
const (
	MaxOwned       = 1000
	MaxOwnedShapes = 5000
)

// withinBounds returns a snapshot with the requests of owners that a plan takes, and the other requests. Owners share
// both bounds by max-min fairness, so an owner within an equal share of both loses nothing to others. The requests of
// one owner are taken in order: the highest priority first; then satisfied ones, so that they lose nothing to a newer
// one; then the oldest. What owners leave of their shares goes to all others in this order. A request with more shapes
// than are left is skipped.
func withinBounds(s *model.Snapshot) (within *model.Snapshot, beyond []raydemand.Owned) {
	if len(s.OwnedRequests) <= MaxOwned && ShapesOf(s.OwnedRequests) <= MaxOwnedShapes {
		return s, nil
	}
	owned := slices.Clone(s.OwnedRequests)
	raydemand.SortOwned(owned)
	slices.SortStableFunc(owned, func(a, b raydemand.Owned) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority),
			vector.CompareBool(a.SatisfiedSince.IsZero(), b.SatisfiedSince.IsZero()))
	})
	shared := withinShares(owned)
	requests, shapes := 0, 0
	for i := range owned {
		if shared[i] {
			requests, shapes = requests+1, shapes+len(owned[i].Requests)
		}
	}
	cut := *s
	cut.OwnedRequests = nil
	for i, of := range owned {
		if !shared[i] {
			if requests == MaxOwned || shapes+len(of.Requests) > MaxOwnedShapes {
				beyond = append(beyond, of)
				continue
			}
			requests, shapes = requests+1, shapes+len(of.Requests)
		}
		cut.OwnedRequests = append(cut.OwnedRequests, of)
	}
	return &cut, beyond
}

// withinShares reports, for each request, whether its owner's shares of both bounds have room for it. The number of
// requests is divided first, because requests that it excludes must not take a share of the shapes.
func withinShares(owned []raydemand.Owned) []bool {
	items := make([]fairshare.Item, len(owned))
	for i := range owned {
		items[i] = fairshare.Item{Owner: owned[i].Owner, Size: 1}
	}
	counted := fairshare.Admit(items, MaxOwned)
	for i := range items {
		if items[i].Size = 0; counted[i] {
			items[i].Size = int64(len(owned[i].Requests))
		}
	}
	within := fairshare.Admit(items, MaxOwnedShapes)
	for i := range within {
		within[i] = within[i] && counted[i]
	}
	return within
}

func ShapesOf(owned []raydemand.Owned) (n int) {
	for i := range owned {
		n += len(owned[i].Requests)
	}
	return n
}
