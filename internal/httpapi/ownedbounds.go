package httpapi

import (
	"fmt"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Bounds on the requests of one RayCluster that are made by this API. Everybody's requests take part in each plan, so those of one owner
// must not take the time of all. Replicas count by what they know, so a few more can come to be. What is over takes part in no plan and only
// room in the API server, for nodepool.ExpiredKept: so it counts for its owner alone, and by a bound of its own.
const (
	maxOfOwner     = 200
	maxKeptOfOwner = 1000
	maxOfCluster   = planner.MaxOwned
)

// roomFor refuses a request that is new, or counts again after it was over, where there are too many. known is nil for a new one.
func (s *server) roomFor(wanted, known *nodepool.OwnedRequest) error {
	owner := wanted.Owner
	if known != nil {
		if s.holds(known) {
			return nil
		}
		owner = known.Owner
	}
	all, err := s.owned().List(wanted.Cluster)
	if err != nil {
		return err
	}
	kept, held, heldByAll := 0, 0, 0
	for i := range all {
		own, holds := all[i].Owner == owner, s.holds(&all[i])
		kept, held, heldByAll = kept+count(own), held+count(own && holds), heldByAll+count(holds)
	}
	tooMany := ""
	switch of := wanted.Cluster.String(); {
	case held >= maxOfOwner:
		tooMany = fmt.Sprintf("%q has %d requests for %s that hold, and there may be no more of one owner", shorten(owner), held, of)
	case heldByAll >= maxOfCluster:
		tooMany = fmt.Sprintf("there are %d requests for %s that hold, and there may be no more", heldByAll, of)
	case known == nil && kept >= maxKeptOfOwner:
		tooMany = fmt.Sprintf("%q has %d requests for %s, those that are over among them, and there may be no more of one owner: delete those, or ask by their ids again",
			shorten(owner), kept, of)
	default:
		return nil
	}
	return &problem{kind: tooManyKept, detail: tooMany}
}

// holds reports whether a request takes part in plans, of the RayCluster that it is for.
func (s *server) holds(r *nodepool.OwnedRequest) bool { return r.Counts(r.ClusterUID, s.now()) }

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Bounds on what a list shows of each request; the request itself is shown whole. Terms are names and values in a bundle and its selectors.
const (
	maxListedBundles = 8
	maxListedTerms   = 64
)

// listed is a request as lists show it: its first bundles, and how many there are beyond them.
func listed(r apiv1.OwnedRequest) apiv1.OwnedRequest {
	terms, shown := 0, 0
	for shown < min(len(r.Bundles), maxListedBundles) {
		if terms += termsOf(&r.Bundles[shown]); terms > maxListedTerms {
			break
		}
		shown++
	}
	r.MoreBundles += len(r.Bundles) - shown
	r.Bundles = r.Bundles[:shown:shown]
	return r
}

func termsOf(request *raydemand.Request) int {
	terms := len(request.Bundle)
	for _, selector := range request.Selectors {
		for _, c := range selector {
			terms += 1 + len(c.Values)
		}
	}
	return terms
}
