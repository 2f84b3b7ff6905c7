package observe

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestIdleClock(t *testing.T) {
	head, worker := nodeID("head"), nodeID("worker")
	type step struct {
		after                time.Duration
		headIdle, workerIdle time.Duration // below 0: the node is busy
		want                 time.Duration
	}
	for name, steps := range map[string][]step{
		"it follows Ray while nothing restarts": {
			{headIdle: time.Hour, workerIdle: 5 * time.Second, want: 5 * time.Second},
			{after: 2 * time.Second, headIdle: time.Hour, workerIdle: 7 * time.Second, want: 7 * time.Second},
		},
		"a job's end, which restarts the head too, is not a use": {
			{headIdle: 14 * time.Second, workerIdle: 9 * time.Second, want: 9 * time.Second},
			{after: 2 * time.Second, headIdle: time.Second, workerIdle: 998 * time.Millisecond, want: 11 * time.Second},
			{after: 2 * time.Second, headIdle: 500 * time.Millisecond, workerIdle: 501 * time.Millisecond, want: 13 * time.Second},
		},
		"a restart of the worker alone is a use": {
			{headIdle: 14 * time.Second, workerIdle: 9 * time.Second, want: 9 * time.Second},
			{after: 2 * time.Second, headIdle: 16 * time.Second, workerIdle: 300 * time.Millisecond, want: 300 * time.Millisecond},
		},
		"work that was seen starts the clock anew, even when a job ends with it": {
			{headIdle: time.Minute, workerIdle: time.Minute, want: time.Minute},
			{after: time.Second, headIdle: time.Minute, workerIdle: -1},
			{after: time.Second, headIdle: 100 * time.Millisecond, workerIdle: 100 * time.Millisecond, want: 100 * time.Millisecond},
		},
		"a busy head vouches for nothing": {
			{headIdle: -1, workerIdle: time.Minute, want: time.Minute},
			{after: time.Second, headIdle: -1, workerIdle: 100 * time.Millisecond, want: 100 * time.Millisecond},
		},
		"a gap in the readings ends our account": {
			{headIdle: time.Minute, workerIdle: time.Minute, want: time.Minute},
			{after: 20 * time.Second, headIdle: time.Second, workerIdle: time.Second, want: time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c IdleClock
			now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			for i, s := range steps {
				now = now.Add(s.after)
				c.Observe(now, []raydemand.Node{
					idleNode(head, true, s.headIdle),
					idleNode(worker, false, s.workerIdle),
				}, true)
				if got := c.Idle(worker); (got - s.want).Abs() > 5*time.Millisecond {
					t.Errorf("step %d: idle for %v, want %v", i, got, s.want)
				}
			}
		})
	}
}

func TestVersionsOfRayThatRestartIdleTimes(t *testing.T) {
	for version, want := range map[string]bool{
		"2.52.0": true, "2.9": true, "2.59.1rc0": true, "2.52rc1": true,
		"2.60.0": false, "2.100": false, "3.1.0": false, "2": false, "2.": false, "2.x": false, "nightly": false, "": false,
	} {
		if got := JobsRestartIdleTimes(version); got != want {
			t.Errorf("Ray %q: %t, want %t", version, got, want)
		}
	}
}
