package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/planner"
)

// rayScript drives Ray's planner.
//
//go:embed rayplanner.py
var rayScript string

// rayPlanner is a process with Ray's planner in it.
type rayPlanner struct {
	worker *worker
	// limit is the most CPU time of one decision; 0 means no limit.
	limit time.Duration
}

// errUnfinished reports that a decision exceeded the limit.
var errUnfinished = errors.New("did not finish")

// errRaised reports that Ray's planner failed, which ends a pass of Ray's autoscaler.
var errRaised = errors.New("raised")

func startRayPlanner(ctx context.Context, python string, limit time.Duration) (*rayPlanner, error) {
	w, err := startWorker(ctx, python, rayScript)
	if err != nil {
		return nil, err
	}
	return &rayPlanner{w, limit}, nil
}

// plan returns what Ray's planner does and the CPU seconds of its schedule() alone. It returns errUnfinished or
// errRaised if there is no decision.
func (r *rayPlanner) plan(s planner.Snapshot) (answer, float64, error) {
	question := struct {
		Snapshot planner.Snapshot `json:"snapshot"`
		Limit    float64          `json:"limit,omitempty"`
	}{s, r.limit.Seconds()}
	var reply struct {
		Seconds            float64
		Launch             map[string]int
		Terminate          []struct{ Pod, Reason string }
		UnservedRequests   []int64
		UnservedGangs      []int
		UnservedConstraint bool
		Raised             string
		Unfinished         bool
	}
	switch err := r.worker.ask(question, &reply); {
	case err != nil:
		return answer{}, 0, fmt.Errorf("planning %s with Ray: %w", s.Name, err)
	case reply.Unfinished:
		return answer{}, 0, fmt.Errorf("planning %s with Ray: %w", s.Name, errUnfinished)
	case reply.Raised != "":
		return answer{}, 0, fmt.Errorf("planning %s with Ray: %w %s", s.Name, errRaised, reply.Raised)
	}
	a := answer{
		launch: reply.Launch, stop: map[string]string{}, unservedRequests: reply.UnservedRequests,
		unservedGangs: make([]bool, len(s.Gangs)), unservedConstraint: reply.UnservedConstraint,
	}
	for _, t := range reply.Terminate {
		a.stop[t.Pod] = t.Reason
	}
	for _, i := range reply.UnservedGangs {
		a.unservedGangs[i] = true
	}
	return a, reply.Seconds, nil
}

// close ends the process.
func (r *rayPlanner) close() error { return r.worker.close() }
