package raydemand

import (
	"cmp"
	"slices"
	"time"
)

// Owned is a standing request for capacity that somebody made in his own name: the cluster keeps room for its bundles in total, whatever is
// in use. Requests of several owners add up, and to the plain one that is made over REST; Ray's own request_resources stands beside.
type Owned struct {
	// ID names it among those of its cluster.
	ID    string `json:"id"`
	Owner string `json:"owner"`
	// Priority: where a limit stands in the way of all, the higher one is served; among equals the one that is older.
	Priority int32 `json:"priority,omitempty"`
	// AllOrNothing launches only where all of it can be had.
	AllOrNothing bool `json:"allOrNothing,omitempty"`
	// Since is when it was first asked for; zero where that is not known.
	Since time.Time `json:"since,omitzero"`
	// SatisfiedSince is since when workers that have joined Ray have had room for all of it, as its owner was told last; zero while they have not.
	// What such a request has on workers that have joined nobody else is told to have, unless a limit stands in the way.
	SatisfiedSince time.Time `json:"satisfiedSince,omitzero"`
	Requests       []Request `json:"requests"`
}

// SortOwned puts requests into the order in which they are served where there is not enough for all: by priority, then by age, then by name.
func SortOwned(requests []Owned) {
	slices.SortFunc(requests, func(a, b Owned) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
}

// RequestState says what becomes of a standing request.
type RequestState string

// The states of a standing request. Waiting: workers that serve it are on their way, or nobody has looked at it yet. Satisfied: workers that have
// joined Ray have room for all of it. Capped: a limit stands in the way of a part of it. Impossible: no worker group could ever serve a part of
// it. Expired: its lease is over, so it is not counted.
const (
	RequestWaiting    RequestState = "Waiting"
	RequestSatisfied  RequestState = "Satisfied"
	RequestCapped     RequestState = "Capped"
	RequestImpossible RequestState = "Impossible"
	RequestExpired    RequestState = "Expired"
)

// Codes of reasons that a request alone can have, beside those of groups and of unmet demand. They are stable.
const (
	CodeSatisfied   = "satisfied"     // workers that have joined Ray have room for all of it
	CodeNotLookedAt = "not_looked_at" // no plan has taken it in yet
	CodeNotScaled   = "not_scaled"    // its RayCluster is not scaled now
	CodeLeaseOver   = "lease_over"    // its lease is over, so it is not counted
	CodeDeleting    = "deleting"      // the object is being deleted
	CodeUnreadable  = "unreadable"    // the object cannot be understood
	// CodeTooMany: so many requests come before it that a plan does not weigh it.
	CodeTooMany = "too_many"
	// CodeOverMemory: the budget of memory for requests has no room for it.
	CodeOverMemory = "over_memory_budget"
	// CodeUnknownCluster: there is no such RayCluster, or not among those that are looked after.
	CodeUnknownCluster = "unknown_cluster"
)

// RequestStates lists all of them.
func RequestStates() []RequestState {
	return []RequestState{RequestWaiting, RequestSatisfied, RequestCapped, RequestImpossible, RequestExpired}
}

// Valid reports whether s is one of the states.
func (s RequestState) Valid() bool { return slices.Contains(RequestStates(), s) }
