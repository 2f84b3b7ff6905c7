package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
)

// policy gives the RayCluster a capacity policy.
func (w *world) policy(text string) {
	w.t.Helper()
	read, fault := policytext.Read([]byte(text))
	if fault != nil {
		w.t.Fatal(fault)
	}
	w.kube.cluster.Policy = &capacity.Written{Policy: read, Source: "annotation"}
}

func TestWarmWorkersAreLaunchedAndStayIdleBeyondTheirTimeout(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.policy(`{"keepWarm": [{"group": "gpu", "count": 2}]}`)
	w.cycle()
	if got := w.group("gpu").Replicas; got != 2 {
		t.Fatalf("%d replicas, want 2 that are free", got)
	}
	w.operate()
	w.joinAll()
	for range 10 {
		w.after(time.Minute)
	}
	if got := w.group("gpu").Replicas; got != 2 || len(w.ray.drains) != 0 {
		t.Fatalf("%d replicas, drained %v: free workers go", got, w.ray.drained())
	}
	w.busy(w.pod(0))
	w.after(time.Second)
	if got := w.group("gpu").Replicas; got != 3 {
		t.Errorf("%d replicas, want 3: what is free is on top of what works", got)
	}
	w.kube.cluster.Policy = nil
	w.operate()
	w.joinAll()
	for range 10 {
		w.after(time.Minute)
	}
	if got := w.group("gpu").Replicas; got == 3 && len(w.ray.drains) == 0 {
		t.Error("without the policy, idle workers stay")
	}
}

func TestAScheduleAppliesFromItsStartToItsEnd(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4)) // it is 12:00 UTC
	w.policy(`{"keepWarm": [{"group": "gpu", "schedules": [{"start": "0 13 * * *", "end": "0 14 * * *", "count": 1}]}]}`)
	if w.after(time.Minute); w.group("gpu").Replicas != 0 {
		t.Fatal("it applies before its start")
	}
	d := w.after(time.Hour)
	if w.group("gpu").Replicas != 1 || d.Plan.Warm[0].Reason.Code != planner.CodeSchedule {
		t.Fatalf("%d replicas, %+v", w.group("gpu").Replicas, d.Plan.Warm)
	}
	w.operate()
	w.joinAll()
	w.after(10 * time.Minute)
	if w.group("gpu").Replicas != 1 || len(w.ray.drains) != 0 {
		t.Fatal("the worker goes while the schedule applies")
	}
	w.pass(time.Hour)
	for range 5 {
		w.after(time.Minute)
	}
	if w.group("gpu").Replicas == 1 && len(w.ray.drains) == 0 {
		t.Error("the worker stays after the end")
	}
}

func TestNodesAreKeptForWorkersThatMayCome(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.kube.cluster.Buffers = &nodepool.Buffers{Templates: map[string]string{"gpu": "v1"}}
	w.policy(`{"keepWarmNodes": [{"group": "gpu", "count": 2}]}`)
	d := w.cycle()
	if len(w.kube.buffers) != 1 || w.kube.buffers[0].Buffer.Pods != 2 || w.group("gpu").Replicas != 0 {
		t.Fatalf("%+v, %d replicas; want a buffer of two pods and no worker", w.kube.buffers, w.group("gpu").Replicas)
	}
	if d.WarmNodes[0].Code != capacity.NodesWaiting {
		t.Errorf("%+v", d.WarmNodes)
	}
	w.kube.cluster.Buffers.List[0].Provided = true
	if d = w.after(time.Minute); d.WarmNodes[0].Code != capacity.NodesWarm {
		t.Errorf("%+v", d.WarmNodes)
	}
}

func TestShadowModeAsksForNoNodes(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.kube.cluster.Buffers = &nodepool.Buffers{Templates: map[string]string{"gpu": "v1"}}
	w.kube.cluster.Mode = nodepool.Shadow
	w.policy(`{"keepWarmNodes": [{"group": "gpu", "count": 2}]}`)
	if d := w.cycle(); len(w.kube.buffers) != 0 || len(d.WarmNodes) != 1 {
		t.Errorf("wrote %+v, shown %+v", w.kube.buffers, d.WarmNodes)
	}
}
