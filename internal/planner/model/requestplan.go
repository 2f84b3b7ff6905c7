package model

import (
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// RequestPlan says what becomes of one request over REST. Asked, Served and Waiting count bundles; what is left of
// Asked is not planned for.
type RequestPlan struct {
	ID    string `json:"id,omitempty"`
	Owner string `json:"owner,omitempty"`
	// Plain marks the request without an owner.
	Plain    bool                   `json:"plain,omitempty"`
	Priority int32                  `json:"priority,omitempty"`
	State    raydemand.RequestState `json:"state"`
	Reason   Reason                 `json:"reason"`
	Asked    int64                  `json:"asked"`
	// Served have a place on workers that have joined Ray, Waiting on those that are on their way or that are launched
	// when it is their turn.
	Served  int64 `json:"served"`
	Waiting int64 `json:"waiting"`
	// Groups are the groups of the pods that serve it, by name; the head's has no name.
	Groups []RequestGroup `json:"groups,omitempty"`
	// Pods are names of pods that serve it, at most MaxRequestPods.
	Pods []string `json:"pods,omitempty"`
}

// RequestGroup counts the pods of a group that serve a request. Others may be served by the same pods.
type RequestGroup struct {
	Name string `json:"name"`
	Pods int64  `json:"pods"`
	// Waiting are those of the pods that have not joined Ray, the last of them asked for at Since; zero where that is not
	// known.
	Waiting int64     `json:"waiting,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// MaxRequestPods bounds how many pods of a request are named.
const MaxRequestPods = 100
