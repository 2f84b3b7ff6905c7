package consolidation

import (
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

const (
	hour = time.Hour
	// regret is for how long nothing is drained after a launch that followed a drain within the same time: the demand
	// came back, so the workers were not used a little for good.
	regret = time.Hour
	// suggestEvery separates two looks that only lead to suggestions. A look reads the head's actor table and plans up
	// to 32 times, in each RayCluster of a fleet that does not opt in.
	suggestEvery = 10 * time.Minute
)

// Tracker remembers of one RayCluster, for safety, since when its workers could have been moved, and what was drained.
// Losing it only delays the next drain, and may let perHour more of them follow.
type Tracker struct {
	session string
	looked  time.Time
	unknown string
	// moves are what the last look found, the best first.
	moves []Move
	// since is since when each worker has been a move in every look, without anything else moving.
	since map[string]time.Time
	// quietSince is since when nothing has been launched; zero before the first observation.
	quietSince time.Time
	drained    []time.Time
	// heldUntil is until when nothing is drained because the last drain was regretted.
	heldUntil time.Time
}

// Observe notes one cycle. unquiet says why nothing may be drained now.
func (t *Tracker) Observe(now time.Time, session, unquiet string, launches bool) {
	if session != t.session {
		*t = Tracker{session: session, drained: t.drained, heldUntil: t.heldUntil, quietSince: now}
	}
	t.drained = slices.DeleteFunc(t.drained, func(at time.Time) bool { return now.Sub(at) >= hour })
	if launches {
		if len(t.drained) > 0 {
			t.heldUntil = now.Add(regret)
		}
		t.quietSince = now
	}
	if unquiet != "" {
		t.since = nil
	}
}

// WantsLook reports whether to look for moves now: seldom if none of them may be made. While anything moves, what was
// found before stays.
func (t *Tracker) WantsLook(now time.Time, opted nodepool.Consolidate, unquiet string, after time.Duration) bool {
	every := LookEvery(after)
	if !opted.Allows(nodepool.ConsolidateServe) {
		every = max(every, suggestEvery)
	}
	return unquiet == "" && (t.looked.IsZero() || now.Sub(t.looked) >= every)
}

// Looked notes the result of a look.
func (t *Tracker) Looked(now time.Time, moves []Move, err error) {
	t.looked, t.unknown = now, ""
	if err != nil {
		t.unknown, t.moves, t.since = err.Error(), nil, nil
		return
	}
	t.moves = moves
	since := map[string]time.Time{}
	for i := range moves {
		since[moves[i].Pod] = now
		if before, known := t.since[moves[i].Pod]; known {
			since[moves[i].Pod] = before
		}
	}
	t.since = since
}

// Drained notes a drain that was asked.
func (t *Tracker) Drained(now time.Time) {
	t.drained = append(t.drained, now)
	t.moves, t.since, t.looked = nil, nil, now
}

// Next returns the move to make now; nil if none may be made, and why says when one will, or what prevents it.
func (t *Tracker) Next(
	now time.Time, opted nodepool.Consolidate, unquiet string, after time.Duration,
) (move *Move, why string) {
	if t.unknown != "" {
		return nil, "the actors cannot be read: " + t.unknown
	}
	var first *Move
	for i := range t.moves {
		if m := &t.moves[i]; opted.Allows(m.Needs) {
			if first == nil || !first.Pays() && m.Pays() {
				first = m
			}
		}
	}
	if first == nil {
		return nil, ""
	}
	since, steady := t.since[first.Pod]
	switch {
	case first.Hourly == 0:
		return nil, fmt.Sprintf("the price of group %s is unknown", first.Group)
	case !first.Pays():
		return nil, fmt.Sprintf("launched again, it would be paid for %s for nothing, and the move saves less",
			first.Again)
	case unquiet != "":
		return nil, unquiet
	case len(t.drained) >= perHour:
		return nil, fmt.Sprintf("%d workers were drained in the last hour", len(t.drained))
	case now.Before(t.heldUntil):
		return nil, "workers were launched again after the last one; next attempt at " + clock(t.heldUntil)
	case !steady:
		return nil, "it has just become possible"
	}
	if t.quietSince.After(since) {
		since = t.quietSince
	}
	if due := since.Add(after); now.Before(due) {
		return nil, "at " + clock(due) + ", if nothing changes"
	}
	return first, ""
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }

// Text says what a worker is used for, where its work fits, and what that saves.
func (m *Move) Text(currency string) string {
	text := fmt.Sprintf("worker %s is used to %.0f %%: its work (replicas of Serve: %d, restartable actors: %d) fits "+
		"on the other workers in use", m.Pod, 100*m.Used, m.Replicas, m.Actors)
	if m.Hourly > 0 {
		text += fmt.Sprintf("; without it, the RayCluster costs %.2f %s per hour less", m.Hourly, currency)
	}
	return text
}
