package controller

import (
	"testing"
	"time"

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
	w.cycles(10, time.Minute)
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
	w.cycles(10, time.Minute)
	if got := w.group("gpu").Replicas; got == 3 && len(w.ray.drains) == 0 {
		t.Error("without the policy, idle workers stay")
	}
}
