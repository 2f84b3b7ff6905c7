package savings

import "time"

// assumedStart is how long a start takes if none was seen, as in forecasts.
const assumedStart = 5 * time.Minute

// Outcome is what a worker group would have cost, and how much more its work would have waited.
type Outcome struct {
	Cost Sum
	// Starts is how many more workers would have started while work waited for them, and Waited for how many seconds it
	// would have waited more, each worker on its own. Both are negative if there would have been fewer.
	Starts, Waited float64
	// Assumed: no start was seen, so its length is assumed.
	Assumed bool
}

// Replay returns what a group would have cost under one of Timeouts.
func (b *Bucket) Replay(i int) Outcome {
	if b.Timeouts == nil {
		return Outcome{Cost: b.Observed}
	}
	t := &b.Timeouts[i]
	return b.outcome(b.Observed.Minus(t.Saved).Plus(t.Added), t.Starts-t.Spared, true)
}

// ReplayMinimum returns what it would have cost if its minimum had been lower by one of Levels.
func (b *Bucket) ReplayMinimum(i int) Outcome {
	if b.Reserve == nil {
		return Outcome{Cost: b.Observed}
	}
	return b.outcome(b.Observed.Minus(b.Reserve[i].Saved), b.Reserve[i].Starts, true)
}

// ReplayWarm returns what it would have cost if less had been kept warm, by one of Levels. Each warm worker that got
// work was replaced by another one, whose start is that for which work would have waited.
func (b *Bucket) ReplayWarm(i int) Outcome {
	if b.Warm == nil {
		return Outcome{Cost: b.Observed}
	}
	return b.outcome(b.Observed.Minus(b.Warm[i].Saved), b.Warm[i].Starts, false)
}

// outcome adds the starts of more workers, and their ends, to a cost.
func (b *Bucket) outcome(cost Sum, starts float64, paysStarts bool) Outcome {
	waits, paid := assumedStart.Seconds(), assumedStart.Seconds()
	if b.Starts > 0 {
		waits, paid = b.StartSeconds/b.Starts, b.StartPaidSeconds/b.Starts
	}
	o := Outcome{Cost: cost, Starts: starts, Waited: starts * waits, Assumed: b.Starts == 0 && starts != 0}
	if pods := b.Observed.PodSeconds(); paysStarts && pods > 0 {
		if b.Leaves > 0 {
			paid += b.LeavingSeconds / b.Leaves
		}
		o.Cost = o.Cost.Plus(b.Observed.times(starts * paid / pods))
	}
	return o
}

// ReplaySize returns what the group would have cost if its workers had had some eighths of their GPUs, for a part of
// their price and of their GPUs, and which part of the time in use would have fitted on such workers. The rest counts
// as it was. fits is 0 if nothing was in use.
func (b *Bucket) ReplaySize(eighths int, price float64) (o Outcome, fits float64) {
	var all, over Sum
	for i, use := range b.Use {
		all = all.Plus(use)
		if i > eighths {
			over = over.Plus(use)
		}
	}
	if all.PodSeconds() == 0 {
		return Outcome{Cost: b.Observed}, 0
	}
	saved := b.Observed.Minus(over).times(1 - price)
	saved[0], saved[3] = 0, 0 // there are as many pods
	return Outcome{Cost: b.Observed.Minus(saved)}, 1 - over.PodSeconds()/all.PodSeconds()
}
