package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestANewcomersIdleTimeCountsFromItsFirstSight(t *testing.T) {
	old, young := idleNode(nodeID("old"), false, time.Minute), idleNode(nodeID("young"), false, 20*time.Second)
	var n newcomers
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	n.observe(start, []raydemand.Node{old})
	n.observe(start.Add(time.Second), []raydemand.Node{old, young})
	n.observe(start.Add(4*time.Second), []raydemand.Node{old, young})
	now := start.Add(4 * time.Second)
	if got := n.bound(now, young.ID, young.Idle); got != 3*time.Second {
		t.Errorf("a node first seen 3 s ago counts as idle for %v", got)
	}
	if got := n.bound(now, old.ID, old.Idle); got != time.Minute {
		t.Errorf("a node of the first reading, idle for a minute by Ray's account, counts as idle for %v", got)
	}
}

func TestANodeThatReturnsFromTheDeadIsANewcomer(t *testing.T) {
	node := idleNode(nodeID("node"), false, time.Minute)
	dead := node
	dead.Status = raydemand.Dead
	var n newcomers
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	n.observe(start, []raydemand.Node{node})
	n.observe(start.Add(time.Second), []raydemand.Node{dead})
	n.observe(start.Add(2*time.Second), []raydemand.Node{node})
	if got := n.bound(start.Add(2*time.Second), node.ID, node.Idle); got != 0 {
		t.Errorf("it counts as idle for %v", got)
	}
}

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
