package main

import (
	"fmt"
	"syscall"
	"time"

	"heliostat.dev/heliostat/internal/planner"
)

// measureFor is how much CPU time to spend on measuring one decision, at least one decision.
const measureFor = 200 * time.Millisecond

// measure plans a snapshot with Heliostat and returns the CPU seconds of one decision, including garbage collection. It
// does not count the first decision, which also grows the heap.
func measure(s planner.Snapshot) (planner.Plan, float64, error) {
	plan := planner.Compute(s, s.Policy)
	began, err := cpuTime()
	if err != nil {
		return planner.Plan{}, 0, err
	}
	for decisions := 1; ; decisions++ {
		planner.Compute(s, s.Policy)
		now, err := cpuTime()
		if err != nil {
			return planner.Plan{}, 0, err
		}
		if spent := now - began; spent >= measureFor {
			return plan, spent.Seconds() / float64(decisions), nil
		}
	}
}

// cpuTime returns the user and system time of this process so far.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("reading the CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
