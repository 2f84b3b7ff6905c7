package raydemand

import (
	"cmp"
	"slices"
	"time"
)

// Owned is a request for capacity that an owner made and that lasts: the cluster keeps room for its bundles in total,
// used or not. Requests of several owners add up, and they add to the plain request over REST. Ray's own
// request_resources is separate.
type Owned struct {
	// ID is the name, unique within the cluster.
	ID    string `json:"id"`
	Owner string `json:"owner"`
	// Priority decides which request is served when a limit does not allow all of them: the higher one first, and among
	// equal ones the older one.
	Priority int32 `json:"priority,omitempty"`
	// AllOrNothing launches workers only if the whole request can be served.
	AllOrNothing bool `json:"allOrNothing,omitempty"`
	// Since is when it was first requested; zero if unknown.
	Since time.Time `json:"since,omitzero"`
	// SatisfiedSince is since when the workers that have joined Ray have had room for the whole request, according to
	// the last status its owner saw; zero while they do not. No other request is reported as served by the room that
	// such a request has on those workers, unless a limit applies.
	SatisfiedSince time.Time `json:"satisfiedSince,omitzero"`
	Requests       []Request `json:"requests"`
}

// SortOwned sorts requests into the one order of admission: by priority, then by age, then by name. It decides which
// requests of a namespace count if there are too many, and which are served first when there is not enough for all.
func SortOwned(requests []Owned) {
	slices.SortFunc(requests, func(a, b Owned) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
}

// Limits on what one request asks for. The CustomResourceDefinition says why, and has them all, as api/openapi.yaml
// has: the API server refuses what is beyond them.
const (
	MaxOwnedBundles   = 10   // kinds of bundles
	MaxOwnedResources = 8    // of one bundle
	MaxOwnedSelectors = 4    // alternatives of one bundle
	MaxOwnedText      = 1024 // characters of all resource names, labels and expressions together
)

// RequestState is the state of an owned request.
type RequestState string

// The states of an owned request. Waiting: workers that serve it are on their way, or no plan has considered it yet.
// Satisfied: workers that have joined Ray have room for all of it. Capped: a limit prevents serving a part of it.
// Impossible: no worker group can ever serve a part of it. Expired: its lease is over, so it does not count.
const (
	RequestWaiting    RequestState = "Waiting"
	RequestSatisfied  RequestState = "Satisfied"
	RequestCapped     RequestState = "Capped"
	RequestImpossible RequestState = "Impossible"
	RequestExpired    RequestState = "Expired"
)

// Reason codes that only a request can have, in addition to those of groups and of unmet demand. They are stable.
const (
	CodeSatisfied   = "satisfied"     // Workers that have joined Ray have room for all of it.
	CodeNotLookedAt = "not_looked_at" // No plan has considered it yet.
	CodeNotScaled   = "not_scaled"    // Heliostat does not scale its RayCluster now.
	CodeLeaseOver   = "lease_over"    // Its lease is over, so it does not count.
	CodeDeleting    = "deleting"      // The object is being deleted.
	CodeUnreadable  = "unreadable"    // The object cannot be read.
	// CodeTooMany means that more requests come before it than the plan could consider.
	CodeTooMany = "too_many"
)
