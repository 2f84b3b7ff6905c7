package planner

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MaxOwned and MaxOwnedShapes bound how many requests of owners one plan takes in, and how many shapes they have together. REST refuses more
// requests than that of one RayCluster; objects that are made otherwise nobody counts.
const (
	MaxOwned       = 1000
	MaxOwnedShapes = 5000
)

// withinBounds is a snapshot with the requests of owners that a plan takes in, and those that are too many. The former are those of the highest
// priority; of equal ones those that are satisfied, so that nobody loses what he has to one who comes later; of those the oldest. One that has
// more shapes than are left is passed over, so that it keeps nobody behind it from being weighed.
func withinBounds(s *model.Snapshot) (within *model.Snapshot, beyond []raydemand.Owned) {
	if len(s.OwnedRequests) <= MaxOwned && shapesOf(s.OwnedRequests) <= MaxOwnedShapes {
		return s, nil
	}
	owned := slices.Clone(s.OwnedRequests)
	raydemand.SortOwned(owned)
	slices.SortStableFunc(owned, func(a, b raydemand.Owned) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), vector.CompareBool(a.SatisfiedSince.IsZero(), b.SatisfiedSince.IsZero()))
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

func shapesOf(owned []raydemand.Owned) (n int) {
	for i := range owned {
		n += len(owned[i].Requests)
	}
	return n
}

// beyondPlans tells of the requests that are too many.
func (r *reporter) beyondPlans() []model.RequestPlan {
	plans := make([]model.RequestPlan, 0, len(r.beyond))
	for _, of := range r.beyond {
		plan := model.RequestPlan{ID: of.ID, Owner: of.Owner, Priority: of.Priority, State: raydemand.RequestCapped, Reason: model.Reason{Code: raydemand.CodeTooMany,
			Message: fmt.Sprintf("a plan takes in %d requests of owners with %d shapes together; this one, of %s, comes after those of a higher priority, those satisfied and those older",
				MaxOwned, MaxOwnedShapes, phrase.Plural(int64(len(of.Requests)), "shape"))}}
		for _, request := range of.Requests {
			plan.Asked = min(plan.Asked+max(request.Count, 0), vector.MaxCount)
		}
		plans = append(plans, plan)
	}
	return plans
}

func (w *words) shareFindings() []raydemand.Finding {
	if len(w.beyond) == 0 {
		return nil
	}
	return []raydemand.Finding{{
		Code: model.FindingTooManyRequests, Severity: raydemand.Warning, Object: "snapshot", Field: "ownedRequests",
		Seen: fmt.Sprintf("%d with %d shapes", w.ownedCount+len(w.beyond), w.ownedShapes+shapesOf(w.beyond)),
		Why: fmt.Sprintf("a plan takes in %d requests of owners with %d shapes together, by priority, the satisfied ones first, then by age; %d do not count",
			MaxOwned, MaxOwnedShapes, len(w.beyond)),
		Fix: "delete ResourceRequests that nobody needs, or ask for fewer different bundles in them",
	}}
}
