package model

import (
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// RequestPlan is the state of one request over REST. Asked, Served and Waiting count bundles; the rest of Asked is not
// planned for.
type RequestPlan struct {
	ID    string `json:"id,omitempty"`
	Owner string `json:"owner,omitempty"`
	// Plain marks the request without an owner.
	Plain    bool                   `json:"plain,omitempty"`
	Priority int32                  `json:"priority,omitempty"`
	State    raydemand.RequestState `json:"state"`
	Reason   Reason                 `json:"reason"`
	Asked    int64                  `json:"asked"`
	// Served bundles are placed on workers that have joined Ray. Waiting ones are placed on workers that are on their
	// way or that are launched later.
	Served  int64 `json:"served"`
	Waiting int64 `json:"waiting"`
	// Groups lists the groups of the pods that serve it, by name; the head's name is empty.
	Groups []RequestGroup `json:"groups,omitempty"`
	// Pods lists names of pods that serve it, at most MaxRequestPods.
	Pods []string `json:"pods,omitempty"`
}

// RequestGroup counts the pods of a group that serve a request. The same pods can serve other requests too.
type RequestGroup struct {
	Name string `json:"name"`
	Pods int64  `json:"pods"`
	// Waiting counts the pods that have not joined Ray. Since is when the last of them was requested; zero if unknown.
	Waiting int64     `json:"waiting,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// MaxRequestPods is how many pods of a request are named.
const MaxRequestPods = 100
