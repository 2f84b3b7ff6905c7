package controller

import (
	"testing"
	"time"
)

func TestAWorkerThatJustJoinedIsNotDrainedForTheTimeItsRayletTookToStart(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.want(1, gpu(1))
	w.after(100 * time.Millisecond)
	w.operate()
	w.joinAll()
	pod := w.pod(0)
	w.node(pod).Idle = 2 * time.Minute // its raylet started long ago
	w.want(0, nil)                     // the work is being placed, or its demand was reported away
	w.after(time.Second)
	if drained := w.ray.drained(); len(drained) != 0 {
		t.Fatalf("drained %v when it was first seen", drained)
	}
	for range 62 {
		w.after(time.Second)
	}
	if drained := w.ray.drained(); len(drained) != 1 || drained[0] != pod {
		t.Errorf("drained %v a minute after it was first seen, want %s", drained, pod)
	}
}
