package memory

import (
	"errors"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/backoff"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/reduction"
	"heliostat.dev/heliostat/internal/controller/reverts"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Patches are the patches of this process: when the next one is due, and what became of the last ones.
type Patches struct {
	rest backoff.Pause
	// generation is that of the last patch; zero if there was none.
	generation int64
	// conflicts counts the conflicts in a row, which slow the loop down a little.
	conflicts int
	// unwritten is why the last patch failed; nil after one succeeds or when there is nothing to write.
	unwritten error
	// named are the pods that were named while no living node was in them.
	named reduction.NamedPods
	// reverts are those of other writers.
	reverts reverts.History
	// growthSince is since when growth is wanted that is not patched yet.
	growthSince time.Time
}

// longestWebhookPause bounds the pause after a webhook that does not answer, which has nothing to do with the
// RayCluster, and soon answers again after a restart.
const longestWebhookPause = time.Second

// Rest reports whether the last patch failed, and the next one is not due yet.
func (p *Patches) Rest(now time.Time) bool { return p.rest.Resting(now) }

// WantGrowth remembers since when a larger goal is wanted, and returns it; zero if targets raise none.
func (p *Patches) WantGrowth(now time.Time, targets []nodepool.Target) time.Time {
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
func (p *Patches) WantNoGrowth() { p.growthSince = time.Time{} }

// GrowthSince returns since when growth is wanted that is not patched yet; zero if none is.
func (p *Patches) GrowthSince() time.Time { return p.growthSince }

// NoneDue notes that the RayCluster is as the intent wants it.
func (p *Patches) NoneDue() { p.conflicts, p.unwritten = 0, nil }

// Wrote notes a patch that was written, and returns since when its growth was wanted; zero if it raises nothing.
func (p *Patches) Wrote(
	generation int64, targets []nodepool.Target, removals []reduction.Removal,
) (wanted time.Time) {
	p.rest, p.conflicts, p.unwritten, p.generation = backoff.Pause{}, 0, nil, generation
	p.named.Note(removals)
	p.reverts.Wrote(generation, targets)
	wanted, p.growthSince = p.growthSince, time.Time{}
	return wanted
}

// WroteNumGPUs notes the generation after numbers of GPUs were written into the spec.
func (p *Patches) WroteNumGPUs(generation int64) { p.generation = generation }

// Failed notes why a patch was not written, and reports whether it is the first failure in a row.
func (p *Patches) Failed(now time.Time, err error) (first bool) {
	longest := backoff.Longest
	if errors.Is(err, nodepool.ErrWebhook) {
		longest = longestWebhookPause
	}
	p.rest.FailWithin(now, longest)
	p.unwritten = err
	return p.rest.Failures() == 1
}

// Conflicted notes that a write to the spec conflicted with another writer.
func (p *Patches) Conflicted() { p.conflicts++ }

// Conflicts returns how many writes in a row have conflicted.
func (p *Patches) Conflicts() int { return p.conflicts }

// Unwritten returns why the last patch failed; nil after one succeeds or when there is nothing to write.
func (p *Patches) Unwritten() error { return p.unwritten }

// OperatorBehind returns why the operator has not yet carried out what the RayCluster says, or "".
func (p *Patches) OperatorBehind(v observation.View) string {
	return reduction.OperatorBehind(v, p.generation)
}

// Reverts says, in one sentence each, which field managers keep setting replicas back.
func (p *Patches) Reverts(now time.Time) []string { return p.reverts.Texts(now) }
