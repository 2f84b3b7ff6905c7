package controller

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
			var c idleClock
			now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			for i, s := range steps {
				now = now.Add(s.after)
				c.observe(now, []raydemand.Node{
					idleNode(head, true, s.headIdle),
					idleNode(worker, false, s.workerIdle),
				}, true)
				if got := c.idle(worker); (got - s.want).Abs() > 5*time.Millisecond {
					t.Errorf("step %d: idle for %v, want %v", i, got, s.want)
				}
			}
		})
	}
}

func idleNode(id raydemand.NodeID, head bool, idle time.Duration) raydemand.Node {
	if idle < 0 {
		return raydemand.Node{ID: id, Head: head, Status: raydemand.Running}
	}
	return raydemand.Node{ID: id, Head: head, Status: raydemand.Idle, Idle: idle}
}

// On Ray 2.52 every job's end restarts every node's idle time (docs/reference/facts.md#idle-time-and-jobs): with a job
// every ten seconds and a timeout of a minute, Ray's figure alone would keep every worker for ever.
func TestShortJobsOnRay252DoNotKeepIdleWorkersForEver(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	w.kube.cluster.RayVersion = "2.52.0"
	w.busy(w.pod(0))
	for range 70 {
		w.after(time.Second)
		if w.now.Second()%10 == 0 {
			for i := range w.ray.nodes {
				if w.ray.nodes[i].Status == raydemand.Idle {
					w.ray.nodes[i].Idle = time.Millisecond
				}
			}
		}
	}
	if got := w.ray.drained(); len(got) != 1 || got[0] != w.pod(1) {
		t.Errorf("drained %v, want the unused worker %s and not the busy one", got, w.pod(1))
	}
}

// A Ray without that defect restarts a node's idle time only for a use, even when the head's restarts with it.
func TestAWorkerThatWorksTogetherWithTheHeadIsNotIdle(t *testing.T) {
	for _, version := range []string{"2.60.0", ""} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
		w.kube.cluster.RayVersion = version
		for range 90 {
			w.after(time.Second)
			if w.now.Second()%10 == 0 {
				w.node("llm-head").Idle, w.node(w.pod(0)).Idle = time.Millisecond, time.Millisecond
			}
		}
		w.nothingWritten("version " + version + ": the worker is used every ten seconds")
	}
}
