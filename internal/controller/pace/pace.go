// Package pace decides when a RayCluster is read next: often while anything moves, seldom at rest, and all RayClusters
// together within a number of readings per second.
//
// It does not read or plan, and it does not ask for the time. What moves besides demand and pods, its caller knows.
package pace

import "time"

const (
	// headless is the pause while there is no head; events of its pod start cycles in between.
	headless = 2 * time.Second
	// off is the pause of a cluster in mode off; an edit of its annotation starts a cycle at once.
	off = 30 * time.Second
	// conflict follows a conflict. It doubles up to longestConflict with each further conflict in a row.
	conflict        = 10 * time.Millisecond
	longestConflict = time.Second
)

// Settings are the limits of pauses. A reading costs 1 to 1.5 ms, so a moving cluster is read every FastPoll and a
// resting one every RestPoll. With many clusters, the moving and the resting ones share half of ReadsPerSecond each:
//
//	pause = max(FastPoll, moving / (ReadsPerSecond/2))   or   max(RestPoll, resting / (ReadsPerSecond/2))
//
// With 200 reads a second, ten moving clusters are read every 100 ms and 1000 resting ones every 10 s; all of it costs
// about a third of a core.
type Settings struct {
	FastPoll, RestPoll time.Duration
	ReadsPerSecond     float64
	// Jitter returns a number in [0, 1).
	Jitter func() float64
}

// Off returns the pause of a cluster in mode off.
func (s Settings) Off() time.Duration { return s.jittered(off) }

// Headless returns the pause while there is no head.
func (s Settings) Headless() time.Duration { return s.jittered(headless) }

// Silent returns the pause while the head does not answer; retry is when the next call to it is due.
func (s Settings) Silent(retry time.Duration) time.Duration {
	return s.jittered(max(s.FastPoll, retry))
}

// Moving returns the pause of one of the clusters that move.
func (s Settings) Moving(clusters int) time.Duration { return max(s.FastPoll, s.share(clusters)) }

// Resting returns the pause of one of the clusters that rest.
func (s Settings) Resting(clusters int) time.Duration {
	return s.jittered(max(s.RestPoll, s.share(clusters)))
}

// AfterConflicts returns the pause after that many conflicts in a row.
func AfterConflicts(inARow int) time.Duration {
	return min(conflict<<min(max(inARow-1, 0), 10), longestConflict)
}

// share returns how long the clusters that share half of the readings take to be read once.
func (s Settings) share(clusters int) time.Duration {
	return time.Duration(float64(clusters) / (s.ReadsPerSecond / 2) * float64(time.Second))
}

// jittered varies a pause by a fifth either way, so that clusters do not move in step.
func (s Settings) jittered(pause time.Duration) time.Duration {
	return time.Duration(float64(pause) * (0.8 + 0.4*s.Jitter()))
}
