package controller

import (
	"errors"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	// settleTime is how long a cluster counts as moving after its last change, so that an unschedulable pod or demand
	// that no group can serve does not keep the loop fast for ever.
	settleTime = 30 * time.Second
	// headlessPause is the pause while there is no head; events of its pod start cycles in between.
	headlessPause = 2 * time.Second
	// offPause is the pause of a cluster in mode off; an edit of its annotation starts a cycle at once.
	offPause = 30 * time.Second
	// conflictPause follows a conflict. It doubles up to longestConflictPause with each further conflict in a row.
	conflictPause        = 10 * time.Millisecond
	longestConflictPause = time.Second
)

// pace returns the pause until the next cycle. A reading costs 1 to 1.5 ms, so a moving cluster is read every FastPoll
// and a resting one every RestPoll. With many clusters, the moving and the resting ones share half of ReadsPerSecond
// each:
//
//	pause = max(FastPoll, moving / (ReadsPerSecond/2))   or   max(RestPoll, resting / (ReadsPerSecond/2))
//
// With 200 reads a second, ten moving clusters are read every 100 ms and 1000 resting ones every 10 s; all of it costs
// about a third of a core.
func (c *Controller) pace(r *record, o outcome) time.Duration {
	v := o.view
	if o.again {
		return min(conflictPause<<min(max(r.patches.conflicts-1, 0), 10), longestConflictPause)
	}
	moving := v.Live() && r.unsettled(o)
	movers, resters := c.count(r, moving)
	half := c.config.ReadsPerSecond / 2
	switch {
	case v.Mode == nodepool.Off:
		return c.jittered(offPause)
	case errors.Is(v.StateErr, head.ErrNoAddress):
		return c.jittered(headlessPause)
	case !v.Live():
		return c.jittered(max(c.config.FastPoll, r.gcs.RetryAt.Sub(v.Now)))
	case moving:
		return max(c.config.FastPoll, perSecond(movers, half))
	}
	return c.jittered(max(c.config.RestPoll, perSecond(resters, half)))
}

// burst is how far the readings of a moment may run ahead of ReadsPerSecond.
const burst = time.Second

// readSlots hands out slots for reading a head, so that cycles started by events keep to ReadsPerSecond too, however
// many pods come and go. A cycle before its slot ends at once and keeps the slot.
type readSlots struct {
	mu   sync.Mutex // guards next
	next time.Time
}

func (t *readSlots) take(now time.Time, perSecond float64) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := now.Add(-burst)
	if t.next.After(turn) {
		turn = t.next
	}
	t.next = turn.Add(time.Duration(float64(time.Second) / perSecond))
	return turn
}

// untilSlot returns how long the cluster must wait for its slot; 0 uses the slot up.
func (c *Controller) untilSlot(r *record, now time.Time) time.Duration {
	if r.slotAt.IsZero() {
		r.slotAt = c.readings.take(now, c.config.ReadsPerSecond)
	}
	if wait := r.slotAt.Sub(now); wait > 0 {
		return wait
	}
	r.slotAt = time.Time{}
	return 0
}

// unsettled reports whether anything moves that the next reading may complete.
func (r *record) unsettled(o outcome) bool {
	if o.view.Now.Sub(r.movedAt) > settleTime {
		return false
	}
	demand := o.view.State.Demand
	return len(demand.Requests)+len(demand.Gangs) > 0 || r.lag.Active() || r.drains.Open() > 0 ||
		len(o.intent.launch) > 0 || o.intent.Any() || r.guard.Doubts() ||
		slices.ContainsFunc(o.intent.snapshot.Nodes, func(n planner.Node) bool {
			return n.State == planner.Pending || n.State == planner.Leaving
		}) ||
		slices.ContainsFunc(o.view.Members,
			func(m membership.Member) bool { return m.Joined() && m.Node.Status == raydemand.Draining })
}

// count returns the numbers of moving and resting clusters.
func (c *Controller) count(r *record, moving bool) (movers, resters int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.moving = moving
	for _, other := range c.records {
		if other.moving {
			movers++
		}
	}
	return movers, len(c.records) - movers
}

func perSecond(clusters int, reads float64) time.Duration {
	return time.Duration(float64(clusters) / reads * float64(time.Second))
}

// jittered varies a pause by a fifth either way, so that clusters do not move in step.
func (c *Controller) jittered(pause time.Duration) time.Duration {
	return time.Duration(float64(pause) * (0.8 + 0.4*c.config.Jitter()))
}
