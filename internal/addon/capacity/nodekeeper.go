package capacity

import (
	"context"
	"errors"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Unwritten is the code of a finding: a CapacityBuffer or its PodTemplate cannot be written.
const Unwritten = "warm-nodes-unwritten"

// longestPause bounds the pause after writes that failed.
const longestPause = 5 * time.Minute

// NodeKeeper is what is remembered of the buffers of one RayCluster. Losing it costs a write.
type NodeKeeper struct {
	// managed: this process may have made buffers, so it removes them when the RayCluster is no longer managed.
	managed bool
	// rest is the pause after a write that failed, and err is why it failed.
	rest addon.Pause
	err  error
}

// Authority says what may be done with the buffers of a RayCluster.
type Authority int

// Plan: nothing is written. Wait: nothing is written in this round. Keep: they are written. Release: they are removed.
// ReleaseOwn: they are removed if this process may have made them.
const (
	Plan Authority = iota
	Wait
	Keep
	Release
	ReleaseOwn
)

// Round decides, and writes what the authority allows, as long as this process may write.
func (k *NodeKeeper) Round(
	ctx context.Context, may func(nodepool.ClusterKey) bool, writer Writer, a Authority, s Seen,
) (NodesDecision, []addon.Action) {
	d := decide(s)
	switch {
	case a == Wait:
		d.Changes = nil
		return d, nil
	case a == Keep:
		k.managed = true
	case a == Release, a == ReleaseOwn && k.managed:
		d.Changes = handBack(s.Cluster)
	default:
		d.Changes, d.Findings = nil, append(d.Findings, leftOver(s.Cluster)...)
	}
	if len(d.Changes) == 0 {
		k.rest, k.err = addon.Pause{}, nil
	}
	actions := k.write(ctx, may, writer, s, d.Changes)
	if k.err != nil {
		d.Findings = append(d.Findings, raydemand.Finding{
			Code: Unwritten, Severity: raydemand.Error, Object: "RayCluster " + s.Cluster.Key.String(),
			Why: k.err.Error(),
			Fix: "grant Heliostat its rights on capacitybuffers and podtemplates in namespace " +
				s.Cluster.Key.Namespace + " (chart value warmNodes: true), or correct what the error says",
		})
	}
	return d, actions
}

// write writes changes, those first that remove a buffer, whose nodes cost money. A change that fails delays the next
// round, and not the other changes.
func (k *NodeKeeper) write(
	ctx context.Context, may func(nodepool.ClusterKey) bool, writer Writer, s Seen, changes []nodepool.BufferChange,
) []addon.Action {
	if k.rest.Resting(s.Now) {
		return nil
	}
	slices.SortStableFunc(changes, func(a, b nodepool.BufferChange) int { return removed(b) - removed(a) })
	var actions []addon.Action
	var failed error
	for _, change := range changes {
		if ctx.Err() != nil || !may(s.Cluster.Key) {
			break
		}
		action := addon.Action{At: s.Now, Kind: addon.ActionNodes, Result: addon.ResultOK,
			Group: change.Buffer.Group, Message: described(change)}
		err := writer.KeepNodes(ctx, change)
		switch {
		case err != nil && ctx.Err() != nil, errors.Is(err, nodepool.ErrReadOnly),
			errors.Is(err, nodepool.ErrNotLeading):
			return actions
		case err == nil:
		case errors.Is(err, nodepool.ErrConflict), errors.Is(err, nodepool.ErrGone):
			action.Result = addon.ResultConflict
		default:
			if failed == nil {
				failed = err
			}
			action.Result, action.Message = addon.ResultError, err.Error()
		}
		actions = append(actions, action)
	}
	switch {
	case failed != nil:
		k.rest.FailWithin(s.Now, longestPause)
		k.err = failed
	case len(actions) > 0:
		k.rest, k.err = addon.Pause{}, nil
	}
	return actions
}

func removed(change nodepool.BufferChange) int {
	if change.Remove {
		return 1
	}
	return 0
}
