package controller

import (
	"testing"
	"time"

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

func TestNodesAreKeptForWorkersThatMayCome(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.kube.cluster.Buffers = &nodepool.Buffers{Templates: map[string]string{"gpu": "v1"}}
	w.policy(`{"keepWarmNodes": [{"group": "gpu", "count": 2}]}`)
	w.kube.cluster.Mode = nodepool.Shadow
	if d := w.cycle(); len(w.kube.buffers) != 0 || len(d.WarmNodes) != 1 {
		t.Errorf("in shadow, wrote %+v, shown %+v", w.kube.buffers, d.WarmNodes)
	}
	w.kube.cluster.Mode = nodepool.Managed
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
