package controller

import (
	"errors"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// patches are the patches of this process: when the next one is due, and what became of the last ones.
type patches struct {
	rest addon.Pause
	// generation is that of the last patch; zero if there was none.
	generation int64
	// conflicts counts the conflicts in a row, which slow the loop down a little.
	conflicts int
	// unwritten is why the last patch failed; nil after one succeeds or when there is nothing to write.
	unwritten error
	// named are the pods that were named while no living node was in them.
	named scaledown.NamedPods
	// reverts are those of other writers.
	reverts observe.Reverts
	// growthSince is since when growth is wanted that is not patched yet.
	growthSince time.Time
}

// longestWebhookPause bounds the pause after a webhook that does not answer, which has nothing to do with the
// RayCluster, and soon answers again after a restart.
const longestWebhookPause = time.Second

// Rest reports whether the last patch failed, and the next one is not due yet.
func (p *patches) Rest(now time.Time) bool { return p.rest.Resting(now) }

// WantGrowth remembers since when a larger goal is wanted, and returns it; zero if targets raise none.
func (p *patches) WantGrowth(now time.Time, targets []nodepool.Target) time.Time {
	grows := slices.ContainsFunc(targets, func(t nodepool.Target) bool { return t.Replicas > t.From })
	switch {
	case !grows:
		p.WantNoGrowth()
	case p.growthSince.IsZero():
		p.growthSince = now
	}
	return p.growthSince
}

// WantNoGrowth forgets since when growth was wanted.
func (p *patches) WantNoGrowth() { p.growthSince = time.Time{} }

// NoneDue notes that the RayCluster is as the intent wants it.
func (p *patches) NoneDue() { p.conflicts, p.unwritten = 0, nil }

// Wrote notes a patch that was written, and returns since when its growth was wanted; zero if it raises nothing.
func (p *patches) Wrote(
	generation int64, targets []nodepool.Target, removals []scaledown.Removal,
) (wanted time.Time) {
	p.rest, p.conflicts, p.unwritten, p.generation = addon.Pause{}, 0, nil, generation
	p.named.Note(removals)
	p.reverts.Wrote(generation, targets)
	wanted, p.growthSince = p.growthSince, time.Time{}
	return wanted
}

// Failed notes why a patch was not written, and reports whether it is the first failure in a row.
func (p *patches) Failed(now time.Time, err error) (first bool) {
	longest := addon.LongestPause
	if errors.Is(err, nodepool.ErrWebhook) {
		longest = longestWebhookPause
	}
	p.rest.FailWithin(now, longest)
	p.unwritten = err
	return p.rest.Failures() == 1
}

// OperatorBehind returns why the operator has not yet carried out what the RayCluster says, or "".
func (p *patches) OperatorBehind(v observe.View) string {
	return scaledown.OperatorBehind(v, p.generation)
}
