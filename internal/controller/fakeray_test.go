package controller

import (
	"context"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// fakeRay is a head. An accepted idle drain ends the node at the next reading, as a raylet does.
type fakeRay struct {
	session      string
	version      int64
	nodes        []raydemand.Node
	demand       raydemand.Demand
	stateErr     error
	drainErr     error
	lostAnswer   error // answers drains that are carried out
	reads        int
	reading      func() // runs during each reading
	draining     func() // runs during each drain
	refuse       map[string]bool
	unknown      bool // states have no fingerprint
	immortal     bool // accepted drains end nothing
	drains       []raydemand.Drain
	occupants    raydemand.Occupants
	occupantsErr error
	looks        int // how often Occupants was called
	residents    []raydemand.Resident
	residentsErr error
	reports      []raydemand.Report
	reportErr    error
	closed       int
}

func (r *fakeRay) State(context.Context) (raydemand.State, error) {
	r.reads++
	r.version++
	if r.reading != nil {
		r.reading()
	}
	if r.stateErr != nil {
		return raydemand.State{}, r.stateErr
	}
	nodes := slices.Clone(r.nodes)
	for i := range nodes {
		nodes[i].Available = nodes[i].Available.Clone()
	}
	state := raydemand.State{Session: r.session, Version: r.version, Nodes: nodes, Demand: r.demand}
	if !r.unknown {
		state.Fingerprint = printOf(state)
	}
	return state, nil
}

func (r *fakeRay) Repeats(ctx context.Context, fingerprint uint64) (raydemand.State, error) {
	return withoutNodes(r.State(ctx))(fingerprint)
}

// withoutNodes leaves the nodes out of a state with a fingerprint, as package gcs does.
func withoutNodes(state raydemand.State, err error) func(fingerprint uint64) (raydemand.State, error) {
	return func(fingerprint uint64) (raydemand.State, error) {
		if state.Fingerprint == fingerprint {
			state.Nodes = nil
		}
		return state, err
	}
}

func (r *fakeRay) Occupants(context.Context) (raydemand.Occupants, error) {
	r.looks++
	return r.occupants, r.occupantsErr
}

func (r *fakeRay) Residents(context.Context) ([]raydemand.Resident, error) {
	return r.residents, r.residentsErr
}

func (r *fakeRay) Drain(_ context.Context, d raydemand.Drain) (raydemand.DrainReply, error) {
	r.drains = append(r.drains, d)
	if r.draining != nil {
		r.draining()
	}
	if r.drainErr != nil {
		return raydemand.DrainReply{}, r.drainErr
	}
	if r.refuse[d.Node.Instance] {
		return raydemand.DrainReply{Message: "The node to be idle terminated is no longer idle."}, nil
	}
	for i := range r.nodes {
		if n := &r.nodes[i]; n.ID == d.Node.ID && !r.immortal {
			if n.Status == raydemand.Idle {
				n.Status = raydemand.Dead
			} else {
				n.Status = raydemand.Draining
			}
		}
	}
	return raydemand.DrainReply{Accepted: r.lostAnswer == nil}, r.lostAnswer
}

func (r *fakeRay) drained() []string {
	var pods []string
	for _, d := range r.drains {
		pods = append(pods, d.Node.Instance)
	}
	return pods
}

func (r *fakeRay) Report(_ context.Context, report raydemand.Report) error {
	r.reports = append(r.reports, report)
	return r.reportErr
}

func (r *fakeRay) Close() error { r.closed++; return nil }
