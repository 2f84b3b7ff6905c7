package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

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
