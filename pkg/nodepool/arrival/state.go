// Package arrival says which stage a starting worker has reached. It must not know Kubernetes objects, Ray or the
// clock, and it decides nothing.
package arrival

import "time"

// State is where one starting worker is. Its JSON form is part of snapshots.
type State struct {
	Stage Stage `json:"stage"`
	// Message adds what holds it up, for example ImagePullBackOff.
	Message string `json:"message,omitempty"`
	// Since is when the stage began; zero if unknown.
	Since time.Time `json:"since,omitzero"`
}
