package observe

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestIdleTimes(t *testing.T) {
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
			var c NodeClocks
			now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			for i, s := range steps {
				now = now.Add(s.after)
				c.Observe(now, []raydemand.Node{
					idleNode(head, true, s.headIdle),
					idleNode(worker, false, s.workerIdle),
				}, true)
				if got := max(0, c.IdleFor(now, &raydemand.Node{ID: worker})); (got - s.want).Abs() > 5*time.Millisecond {
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

// A node that is in use before and after Ray was unreadable may have been idle in between, and may be getting an actor
// now: drained as one that only a placement group reserves, it would end, and the actor with it.
func TestUseBeforeAnOutageOfRayProvesNothingAfterIt(t *testing.T) {
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	reserved := []raydemand.Node{{Status: raydemand.Running, Activity: []string{"Resource: GPU currently in use."}}}
	for _, c := range []struct {
		outage, want time.Duration
	}{{unseen, raydemand.ProcessStart + unseen}, {unseen + 1, 0}} {
		var clock NodeClocks
		clock.Observe(start, reserved, false)
		for at := time.Duration(0); at <= raydemand.ProcessStart; at += time.Second {
			clock.Observe(start.Add(at), reserved, false)
		}
		now := start.Add(raydemand.ProcessStart + c.outage)
		clock.Observe(now, reserved, false)
		if got := clock.UsedFor(now, reserved[0].ID); got != c.want {
			t.Errorf("after an outage of %v: %v, want %v", c.outage, got, c.want)
		}
	}
}

func TestTheIdleTimeOfARecentlyJoinedNodeBeginsWhenItIsFirstSeen(t *testing.T) {
	old, young := idleNode(nodeID("old"), false, time.Minute), idleNode(nodeID("young"), false, 20*time.Second)
	var n NodeClocks
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	n.Observe(start, []raydemand.Node{old}, false)
	n.Observe(start.Add(time.Second), []raydemand.Node{old, young}, false)
	n.Observe(start.Add(4*time.Second), []raydemand.Node{old, young}, false)
	now := start.Add(4 * time.Second)
	if got := n.IdleFor(now, &young); got != 3*time.Second {
		t.Errorf("a node first seen 3 s ago counts as idle for %v", got)
	}
	if got := n.IdleFor(now, &old); got != time.Minute {
		t.Errorf("a node of the first reading, idle for a minute by Ray's account, counts as idle for %v", got)
	}
}

func TestANodeThatReturnsFromTheDeadIsANewcomer(t *testing.T) {
	node := idleNode(nodeID("node"), false, time.Minute)
	dead := node
	dead.Status = raydemand.Dead
	var n NodeClocks
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	n.Observe(start, []raydemand.Node{node}, false)
	n.Observe(start.Add(time.Second), []raydemand.Node{dead}, false)
	n.Observe(start.Add(2*time.Second), []raydemand.Node{node}, false)
	if got := n.IdleFor(start.Add(2*time.Second), &node); got != 0 {
		t.Errorf("it counts as idle for %v", got)
	}
}
