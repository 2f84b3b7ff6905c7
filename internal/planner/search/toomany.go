package search

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MaxOwned and MaxOwnedShapes bound how many requests of owners one plan takes in, and how many shapes they have
// together. REST refuses more requests than that of one RayCluster; objects that are made otherwise nobody counts.
const (
	MaxOwned       = 1000
	MaxOwnedShapes = 5000
)

// withinBounds is a snapshot with the requests of owners that a plan takes in, and those that are too many. The former
// are those of the highest priority; of equal ones those that are satisfied, so that nobody loses what he has to one
// who comes later; of those the oldest. One that has more shapes than are left is passed over, so that it keeps nobody
// behind it from being weighed.
func withinBounds(s *model.Snapshot) (within *model.Snapshot, beyond []raydemand.Owned) {
	if len(s.OwnedRequests) <= MaxOwned && ShapesOf(s.OwnedRequests) <= MaxOwnedShapes {
		return s, nil
	}
	owned := slices.Clone(s.OwnedRequests)
	raydemand.SortOwned(owned)
	slices.SortStableFunc(owned, func(a, b raydemand.Owned) int {
		return cmp.Or(
			cmp.Compare(b.Priority, a.Priority),
			vector.CompareBool(a.SatisfiedSince.IsZero(), b.SatisfiedSince.IsZero()),
		)
	})
	cut := *s
	cut.OwnedRequests = nil
	shapes := 0
	for _, of := range owned {
		if len(cut.OwnedRequests) == MaxOwned || shapes+len(of.Requests) > MaxOwnedShapes {
			beyond = append(beyond, of)
			continue
		}
		cut.OwnedRequests = append(cut.OwnedRequests, of)
		shapes += len(of.Requests)
	}
	return &cut, beyond
}

func ShapesOf(owned []raydemand.Owned) (n int) {
	for i := range owned {
		n += len(owned[i].Requests)
	}
	return n
}
