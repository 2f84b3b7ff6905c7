package controller

import "time"

// When a RayCluster is read next, and when a cycle follows:
//
//   - Ray is read at an interval: the active one, or the idle one. What a reading shows is compared with the reading
//     that the last decision rests on. If it is the same, the decision stands; otherwise a cycle follows.
//   - An event of Kubernetes starts a cycle, and so does the end of the time for which a decision stands at most.
//   - One limiter (Controller.cycles) delays the cycles that events start. A RayCluster in a fleet in which many change
//     has turns: a reading that shows something new before its turn starts a cycle if the limiter has room, otherwise
//     the cycle follows at its turn.
//
// The intervals grow with the number of RayClusters that share ReadsPerSecond and CyclesPerSecond:
//
//	RayCluster                               read every    turn every           a decision stands at most
//	active: it changed in the last 30 s      active ones   active ones share    active ones share 1/8 of the
//	                                         share 1/8     1/2 of the cycles    cycles, 1 s; at rest, as idle
//	waiting: something is open that time     as idle       none                 waiting ones share 1/8 of the
//	  alone may change                                                          cycles, 1 s to 30 s
//	idle                                     all others    none                 all others share 1/8 of the
//	                                         share 1/2                          cycles, 1 s to 2 min
//
// Deadlines, such as the idle timeout of a worker, end an interval and a decision earlier. Where something is left to
// write, a decision stands for 1 s or 5 s at most, and with a capacity policy for 30 s (limited). While the head does
// not answer, its back-off says when the next cycle is. A reading costs 0.1 to 0.3 ms if it repeats the last one, a
// cycle 1 to 2 ms.

// motion is how much a RayCluster moves.
type motion int

const (
	idle motion = iota
	waiting
	active
	motions // how many there are
)

// counts are how many RayClusters are active, wait, and are not active; those that wait are among the last.
type counts struct{ active, waiting, still int }

const (
	// seenWithin is the interval of an idle RayCluster while the limit allows it, so that a new task is seen within a
	// second. Few RayClusters are read more often: calmReads is how many readings per second they share.
	seenWithin = 600 * time.Millisecond
	calmReads  = 250
	// soon is the least for which a decision stands while anything is open that time alone may change, and for an idle
	// one. openStands and idleStands are the most. Of an idle RayCluster, only a change or a deadline can lead to
	// another decision, so repeating it is only a precaution: at 5,000 RayClusters, half of the CPU time went to
	// decisions that were repeated each 30 s.
	soon       = time.Second
	openStands = 30 * time.Second
	idleStands = 2 * time.Minute
	// earlyCost is what a cycle before its turn takes of the limiter: so they are at most a quarter of what events may
	// start, and events, which wait for their place, come first.
	earlyCost = 4

	// pauseHeadless is the pause while there is no head; events of its pod start cycles in between.
	pauseHeadless = 2 * time.Second
	// pauseOff is the pause of a RayCluster in mode off; an edit of its annotation starts a cycle at once.
	pauseOff = 30 * time.Second
	// conflictPause follows a conflict. It doubles up to soon with each further conflict in a row.
	conflictPause = 10 * time.Millisecond
)

// interval is the time between two readings.
func (c *Config) interval(m motion, n counts) time.Duration {
	if m == active {
		return max(c.FastPoll, each(n.active, c.ReadsPerSecond/8))
	}
	return c.IdleInterval(n.still)
}

// IdleInterval is the time between two readings of one of the RayClusters that are not active.
func (c *Config) IdleInterval(clusters int) time.Duration {
	few := min(each(clusters, calmReads), seenWithin)
	return max(c.RestPoll, few, each(clusters, c.ReadsPerSecond/2))
}

// turn is the shortest time between two cycles that readings start.
func (c *Config) turn(m motion, n counts) time.Duration {
	if m == active {
		return max(c.FastPoll, each(n.active, c.CyclesPerSecond/2))
	}
	return 0
}

// stands is how long a decision stands while readings repeat, unless the RayCluster is at rest.
func (c *Config) stands(m motion, n counts) time.Duration {
	if m == active {
		return max(c.turn(active, n)/2, min(each(n.active, c.CyclesPerSecond/8), soon))
	}
	return c.share(n.waiting, openStands)
}

// IdleStands is how long a decision about one of the RayClusters that are not active stands. It varies by a tenth
// either way, so that they do not move in step.
func (c *Config) IdleStands(clusters int) time.Duration {
	return time.Duration(float64(c.share(clusters, idleStands)) * (0.9 + 0.2*c.Jitter()))
}

// share is how long a decision stands, most at most, if RayClusters share an eighth of the cycles.
func (c *Config) share(clusters int, most time.Duration) time.Duration {
	return min(max(soon, each(clusters, c.CyclesPerSecond/8)), most)
}

// pauseAfterConflicts returns the pause after that many conflicts in a row.
func pauseAfterConflicts(inARow int) time.Duration {
	return min(conflictPause<<min(max(inARow-1, 0), 10), soon)
}

// each returns how long RayClusters take to have one turn each.
func each(clusters int, perSecond float64) time.Duration {
	return time.Duration(float64(clusters) / perSecond * float64(time.Second))
}
