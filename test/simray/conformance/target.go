// Package conformance is a list of assertions about the GCS services of a Ray head. It runs against simray in every
// test run, and against real heads of several versions if they are installed. Both must satisfy the same list, so that
// results of tests with simray apply to Ray. The package must not assert anything that only simray does.
package conformance

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/test/simray"
)

// Target is a head under test. It starts without workers and work.
type Target interface {
	// Addr returns "ip:port" of the GCS.
	Addr() string
	// Version returns the version of Ray. Assertions differ between versions.
	Version() simray.Version
	// Start adds a worker and returns. The list waits until the state shows the worker.
	Start(t *testing.T, worker simray.Node)
	// Do starts work and returns a function that ends it.
	Do(t *testing.T, work Work) (stop func())
	// RequestResources calls the function of Ray's SDK with this name.
	RequestResources(t *testing.T, bundles []map[string]float64, selectors []map[string]string)
	// Restart kills the head and starts another one at the same address.
	Restart(t *testing.T)
	// Patience is the maximum time until a change shows in the state.
	Patience() time.Duration
	// Notice is the deadline of the drain whose end the list waits for.
	Notice() time.Duration
}

// Work is the work that a driver submits, with the names of Ray's Python API.
type Work struct {
	Tasks []Task `json:"tasks,omitempty"`
	Gangs []Gang `json:"gangs,omitempty"`
}

// Task is a number of equal tasks or actors. A selector maps a label to an expression: v, !v, in(a,b) or !in(a,b).
type Task struct {
	Resources map[string]float64  `json:"resources"`
	Selectors []map[string]string `json:"selectors,omitempty"`
	Count     int                 `json:"count"`
	Actor     bool                `json:"actor,omitempty"`
	// Seconds is how long the task runs after it is placed. Zero means until it is stopped.
	Seconds float64 `json:"seconds,omitempty"`
}

// Gang is a placement group. Topology is the label of topology_strategy.
type Gang struct {
	Strategy  string               `json:"strategy,omitempty"`
	Bundles   []map[string]float64 `json:"bundles"`
	Selectors []map[string]string  `json:"selectors,omitempty"`
	Topology  string               `json:"topology,omitempty"`
}
