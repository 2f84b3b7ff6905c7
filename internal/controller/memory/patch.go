package memory

import (
	"errors"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/backoff"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/reduction"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// patches is what is remembered of the patches of this process.
type patches struct {
	rest backoff.Pause
	// generation is that of the last patch; zero if there was none.
	generation int64
	// conflicts counts the conflicts in a row, which slow the loop down a little.
	conflicts int
	// unwritten is why the last patch failed; nil after one succeeds or when there is nothing to write.
	unwritten error
	// named are the pods that were named while no living node was in them.
	named reduction.NamedPods
	// growthSince is since when growth is wanted that is not patched yet.
	growthSince time.Time
}

// longestWebhookPause bounds the pause after a webhook that does not answer, which has nothing to do with the
// RayCluster, and soon answers again after a restart.
const longestWebhookPause = time.Second

// PatchRests reports whether the last patch failed, and the next one is not due yet.
func (m *Memory) PatchRests(now time.Time) bool { return m.patches.rest.Resting(now) }

// Targets returns the targets of the patch that carries an intent out, and takes back the names of pods that returned.
func (m *Memory) Targets(v observation.View, i *Intent, s *Settings) (
	[]nodepool.Target, []raydemand.Finding, error,
) {
	cluster := m.patches.named.WithReturned(v, m.drains, s.AllocationTimeout)
	return nodepool.Targets(cluster, i.Launch, reduction.PodsOf(i.Removals))
}

// WantGrowth remembers since when a larger goal is wanted, and returns it; zero if targets raise none.
func (m *Memory) WantGrowth(now time.Time, targets []nodepool.Target) time.Time {
	p := &m.patches
	grows := slices.ContainsFunc(targets, func(t nodepool.Target) bool { return t.Replicas > t.From })
	switch {
	case !grows:
		p.growthSince = time.Time{}
	case p.growthSince.IsZero():
		p.growthSince = now
	}
	return p.growthSince
}

// GrowthSince returns since when growth is wanted that is not patched yet; zero if none is.
func (m *Memory) GrowthSince() time.Time { return m.patches.growthSince }

// NothingToPatch notes that the RayCluster is as the intent wants it.
func (m *Memory) NothingToPatch() { m.patches.conflicts, m.patches.unwritten = 0, nil }

// Patched notes a patch that was written, and returns since when its growth was wanted; zero if it raises nothing.
func (m *Memory) Patched(generation int64, targets []nodepool.Target, i *Intent) (wanted time.Time) {
	p := &m.patches
	p.rest, p.conflicts, p.unwritten, p.generation = backoff.Pause{}, 0, nil, generation
	p.named.Note(i.Removals)
	m.reverts.Wrote(generation, targets)
	wanted, p.growthSince = p.growthSince, time.Time{}
	return wanted
}

// PatchFailed notes why a patch was not written, and reports whether it is the first failure in a row.
func (m *Memory) PatchFailed(now time.Time, err error) (first bool) {
	longest := backoff.Longest
	if errors.Is(err, nodepool.ErrWebhook) {
		longest = longestWebhookPause
	}
	m.patches.rest.FailWithin(now, longest)
	m.patches.unwritten = err
	return m.patches.rest.Failures() == 1
}

// Conflicted notes that a write conflicted with another one.
func (m *Memory) Conflicted() { m.patches.conflicts++ }

// Conflicts returns how many writes in a row have conflicted.
func (m *Memory) Conflicts() int { return m.patches.conflicts }

// Unwritten returns why the last patch failed; nil after one succeeds or when there is nothing to write.
func (m *Memory) Unwritten() error { return m.patches.unwritten }

// WroteSpec notes the generation after another write to the spec than a patch of targets.
func (m *Memory) WroteSpec(generation int64) { m.patches.generation = generation }

// OperatorBehind returns why the operator has not yet carried out what the RayCluster says, or "".
func (m *Memory) OperatorBehind(v observation.View) string {
	return reduction.OperatorBehind(v, m.patches.generation)
}
