package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	addoncapacity "heliostat.dev/heliostat/internal/addon/capacity"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTheStatusOfAPolicyIsWrittenOnceAndOnlyIfManaged(t *testing.T) {
	status := capacity.Status{Name: "office", State: capacity.Active}
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.kube.cluster.PolicyStatuses = []capacity.Status{status}
	w.kube.cluster.Mode = nodepool.Shadow
	w.cycle()
	if len(w.kube.policies) != 0 {
		t.Errorf("in shadow mode %+v is written", w.kube.policies)
	}
	w.kube.cluster.Mode = nodepool.Managed
	w.kube.policyErr = errors.New("forbidden")
	d := w.after(time.Second)
	if !slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == addoncapacity.PolicyUnwritten }) {
		t.Errorf("findings %+v, want one about the write that failed", d.Findings)
	}
	w.kube.policyErr = nil
	w.after(time.Minute)
	if len(w.kube.policies) != 1 || w.kube.policies[0] != status {
		t.Errorf("written %+v, want %+v once", w.kube.policies, status)
	}
	w.after(time.Minute)
	if d := w.after(time.Minute); len(w.kube.policies) != 1 || slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == addoncapacity.PolicyUnwritten }) {
		t.Errorf("written %+v, findings %+v", w.kube.policies, d.Findings)
	}
}

func TestTheStatusOfAPolicySaysWhatBecameOfItsWarmNodes(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.policy(`{"keepWarmNodes": [{"group": "gpu", "count": 2}, {"group": "tpu", "count": 1}]}`)
	w.kube.cluster.Buffers = &nodepool.Buffers{Templates: map[string]string{"gpu": "v1"}}
	counts := capacity.Status{Name: "office", UID: "u-9", State: capacity.Active}
	other := capacity.Status{Name: "other", UID: "u-8", State: capacity.Superseded}
	w.kube.cluster.PolicyStatus, w.kube.cluster.PolicyStatuses = &counts, []capacity.Status{counts, other}
	w.cycle()
	want := counts
	want.WarmNodes = "keepWarmNodes[0]: nodes_waiting: nodes for 2 of 2 workers of group gpu\n" +
		"keepWarmNodes[1]: no_group: nodes for 0 of 1 workers of group tpu"
	if diff := cmp.Diff([]capacity.Status{other, want}, w.kube.policies); diff != "" {
		t.Fatalf("written (-want +got):\n%s", diff)
	}
	w.kube.cluster.PolicyStatus = &want // as the watch shows it
	if w.after(time.Second); len(w.kube.policies) != 2 {
		t.Errorf("%+v is written again", w.kube.policies[2:])
	}
	w.kube.cluster.Buffers.List[0].Provided = true
	if w.after(time.Second); len(w.kube.policies) != 3 ||
		!strings.HasPrefix(w.kube.policies[2].WarmNodes, "keepWarmNodes[0]: warm: ") {
		t.Errorf("once nodes are there, written %+v", w.kube.policies[2:])
	}
}

func TestAPolicyWithoutARayClusterSaysSoWhereItWouldBeManaged(t *testing.T) {
	status := capacity.Status{Name: "office", State: capacity.NoRayCluster}
	for name, c := range map[string]struct {
		config  Config
		written int
	}{
		"managed by default": {Config{}, 1},
		"in shadow":          {Config{DefaultMode: nodepool.Shadow}, 0},
		"read-only":          {Config{ReadOnly: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.config, gpuGroup("gpu", 0, 0, 4))
			w.kube.clusterErr, w.kube.stranded = nodepool.ErrGone, []capacity.Status{status}
			w.kube.policyErr = errors.New("forbidden")
			if next := w.look(); (next == time.Minute) != (c.written > 0) {
				t.Errorf("after a write that failed, the next cycle is in %v", next)
			}
			w.kube.policyErr = nil
			w.look()
			if next := w.look(); next != 0 || len(w.kube.policies) != c.written {
				t.Errorf("written %+v, want %d; the next cycle is in %v", w.kube.policies, c.written, next)
			}
		})
	}
}

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
