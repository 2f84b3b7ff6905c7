// Package conformance is one list of assertions about a Ray head's wire. It runs against simray in every test and
// against real heads of several versions where they are installed, and must agree on both: so what other tests learn
// from simray holds for Ray.
package conformance

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/simray"
)

// Target is a head under test, without worker and work.
type Target interface {
	// Addr is "ip:port" of the GCS.
	Addr() string
	// Version says which of the differences between releases to expect.
	Version() simray.Version
	// Start adds a worker and returns; the list waits until it shows.
	Start(t *testing.T, worker simray.Node)
	// Do starts work and returns what ends it.
	Do(t *testing.T, work Work) (stop func())
	// RequestResources calls Ray's SDK function of that name.
	RequestResources(t *testing.T, bundles []map[string]float64, selectors []map[string]string)
	// Restart kills the head and starts another at the same address.
	Restart(t *testing.T)
	// Patience is how long something may take until it shows.
	Patience() time.Duration
	// Notice is the deadline of a drain that the list waits out.
	Notice() time.Duration
}

// Work is what a driver submits, in the words of Ray's Python API.
type Work struct {
	Tasks []Task `json:"tasks,omitempty"`
	Gangs []Gang `json:"gangs,omitempty"`
}

// Task is a number of equal tasks or actors. A selector maps a label to an expression: v, !v, in(a,b), !in(a,b).
type Task struct {
	Resources map[string]float64  `json:"resources"`
	Selectors []map[string]string `json:"selectors,omitempty"`
	Count     int                 `json:"count"`
	Actor     bool                `json:"actor,omitempty"`
	// Seconds the task runs once it is placed; zero means until it is ended.
	Seconds float64 `json:"seconds,omitempty"`
}

// Gang is a placement group; Topology is the label of topology_strategy.
type Gang struct {
	Strategy  string               `json:"strategy,omitempty"`
	Bundles   []map[string]float64 `json:"bundles"`
	Selectors []map[string]string  `json:"selectors,omitempty"`
	Topology  string               `json:"topology,omitempty"`
}
