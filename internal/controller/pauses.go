package controller

import "time"

const (
	// pauseHeadless is the pause while there is no head; events of its pod start cycles in between.
	pauseHeadless = 2 * time.Second
	// pauseOff is the pause of a cluster in mode off; an edit of its annotation starts a cycle at once.
	pauseOff = 30 * time.Second
	// conflict follows a conflict. It doubles up to longestConflict with each further conflict in a row.
	conflict        = 10 * time.Millisecond
	longestConflict = time.Second
)

// Pace are the limits of pauses.
//
// A reading costs 0.1 to 0.3 ms if it repeats the last one, and then the last decision stands; a cycle costs 1 to 2 ms.
// So a cluster is read often, and its decision is made anew when something has changed, and otherwise after a while
// that depends on how many clusters share CyclesPerSecond: the moving ones half of it if each reading shows something
// new, together with those that settle, and an eighth if none does; those that wait an eighth; the resting ones an
// eighth. A quarter is for clusters that show something new before their turn: mostly few of them do at the same time.
// Cycles that events start have a limit of their own, Slots. The resting clusters share half of ReadsPerSecond, the
// moving ones an eighth, and those that settle another one.
type Pace struct {
	// FastPoll and RestPoll are the shortest pauses between two readings of a cluster that moves, and of one at rest.
	FastPoll, RestPoll              time.Duration
	ReadsPerSecond, CyclesPerSecond float64
	// Jitter returns a number in [0, 1), which varies how long decisions at rest stand. The pool of cycles
	// varies pauses.
	Jitter func() float64
}

const (
	// seenWithin is the pause between two readings of a cluster at rest while the limit allows it, so that a new task
	// is seen within a second. Few clusters are read more often: calmReads is how many readings per second they share.
	seenWithin = 600 * time.Millisecond
	calmReads  = 250
	// soon is the least for which a decision stands while anything is open that time alone may change, and for one at
	// rest; restStands is the most.
	soon       = time.Second
	restStands = 30 * time.Second
)

// Silent returns the pause while the head does not answer; retry is when the next call to it is due.
func (s Pace) Silent(retry time.Duration) time.Duration {
	return max(s.FastPoll, retry)
}

// Moving returns the shortest pause between two cycles of one of the clusters that move, if readings start them.
func (s Pace) Moving(clusters int) time.Duration {
	return max(s.FastPoll, each(clusters, s.CyclesPerSecond/2))
}

// EarlyPerSecond returns how many cycles per second may begin before their cluster's turn, all clusters together.
func (s Pace) EarlyPerSecond() float64 { return s.CyclesPerSecond / 4 }

// Following returns the pause between two readings of one of the clusters that move.
func (s Pace) Following(clusters int) time.Duration {
	return max(s.FastPoll, each(clusters, s.ReadsPerSecond/8))
}

// Settling returns the pause between two readings of one of the clusters that settle, among all that do not move.
func (s Pace) Settling(clusters, all int) time.Duration {
	return min(s.Following(clusters), s.Resting(all))
}

// SettlingTurn returns the shortest pause between two cycles of one of the clusters that settle, if readings start
// them. As many move or settle as changing says.
func (s Pace) SettlingTurn(changing, all int) time.Duration {
	return max(s.Moving(changing), s.Resting(all))
}

// Resting returns the pause between two readings of one of the clusters that rest or wait.
func (s Pace) Resting(clusters int) time.Duration {
	few := min(each(clusters, calmReads), seenWithin)
	return max(s.RestPoll, few, each(clusters, s.ReadsPerSecond/2))
}

// StandsMoving returns how long a decision about one of the clusters that move stands while readings repeat.
func (s Pace) StandsMoving(clusters int) time.Duration {
	return max(s.Moving(clusters)/2, min(each(clusters, s.CyclesPerSecond/8), soon))
}

// StandsOpen returns how long a decision about one of the clusters that wait stands.
func (s Pace) StandsOpen(clusters int) time.Duration {
	return min(max(soon, each(clusters, s.CyclesPerSecond/8)), restStands)
}

// StandsAtRest returns how long a decision about one of the clusters that rest stands while readings repeat. It varies
// by a tenth either way, so that clusters do not move in step.
func (s Pace) StandsAtRest(clusters int) time.Duration {
	stands := min(max(soon, each(clusters, s.CyclesPerSecond/8)), restStands)
	return time.Duration(float64(stands) * (0.9 + 0.2*s.Jitter()))
}

// pauseAfterConflicts returns the pause after that many conflicts in a row.
func pauseAfterConflicts(inARow int) time.Duration {
	return min(conflict<<min(max(inARow-1, 0), 10), longestConflict)
}

// each returns how long clusters take to have one turn each.
func each(clusters int, perSecond float64) time.Duration {
	return time.Duration(float64(clusters) / perSecond * float64(time.Second))
}
