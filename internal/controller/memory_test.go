package controller

import (
	"fmt"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// settings bound nothing but what a test sets.
func settings() *Config {
	return &Config{DrainTimeout: time.Minute, DrainDeadline: time.Minute}
}

// viewOf is a managed RayCluster with a head and so many idle workers of one group.
func viewOf(workers int) observe.View {
	one := raydemand.Bundle{raydemand.GPU: raydemand.One}
	v := observe.View{Now: start, ReadAt: start, Mode: nodepool.Managed, Cluster: nodepool.Cluster{
		Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, UID: "uid-1", Generation: 1, ObservedGeneration: 1,
		Groups: []nodepool.WorkerGroup{{Name: "gpu", NumOfHosts: 1, Replicas: workers, Max: 9, Resources: one}},
	}}
	v.State = raydemand.State{Session: "session-1", Nodes: []raydemand.Node{{ID: raydemand.NodeID{255},
		Instance: "head", Head: true, Status: raydemand.Idle}}}
	for i := range workers {
		pod := fmt.Sprintf("worker-%d", i)
		v.Cluster.Workers = append(v.Cluster.Workers, nodepool.Worker{Pod: pod, UID: pod, Group: "gpu", Running: true})
		v.State.Nodes = append(v.State.Nodes, raydemand.Node{ID: raydemand.NodeID{byte(i)}, Instance: pod, Group: "gpu",
			Status: raydemand.Idle, Total: one, Available: one})
	}
	joined(&v)
	return v
}

// joined completes the view after its cluster or its nodes have changed.
func joined(v *observe.View) {
	v.Members, v.Head = observe.Join(v.Cluster, v.State.Nodes), observe.LivingHead(v.State.Nodes)
}

// later is the same view after a while.
func later(v observe.View, d time.Duration) observe.View {
	v.Now, v.ReadAt = v.Now.Add(d), v.ReadAt.Add(d)
	return v
}

// TestAllForgetAGroupThatIsRenamed has whole cycles: features forget groups too.
func TestAllForgetAGroupThatIsRenamed(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 2), gpuGroup("stays", 1, 0, 2))
	r := w.c.record(key)
	for _, name := range []string{"gpu-1", "gpu-2", "gpu-3"} {
		w.kube.cluster.Groups[0].Name = name
		r.numGPUs.note(nodepool.NumGPUsTarget{Group: name}, nil, w.now)
		w.after(time.Second)
	}
	if m := &r.memory; len(m.shapes) != 2 || len(m.breakers) > 2 {
		t.Errorf("%d shapes and %d breakers of 2 groups are remembered", len(m.shapes), len(m.breakers))
	}
	if len(r.numGPUs.groups) != 1 {
		t.Errorf("numbers of %d groups are remembered, want that of the one that exists", len(r.numGPUs.groups))
	}
}

// states renders a snapshot's nodes as pod=STATE.
func states(s planner.Snapshot) map[string]string {
	got := map[string]string{}
	for _, n := range s.Nodes {
		got[n.Pod] = string(n.State)
		if n.Expected {
			got[n.Pod] += " expected"
		}
	}
	return got
}

// listedAtMost is how many expected pods a snapshot lists.
const listedAtMost = 4096

// TestHugeNumbersStayWithinTheInFlightCap has more pods on their way than a snapshot lists.
func TestHugeNumbersStayWithinTheInFlightCap(t *testing.T) {
	for name, c := range map[string]struct {
		replicas       int
		wanted         int64
		cap, want      int
		listed, capped int
	}{
		"one call of a driver":          {0, 1_000_000_000, 1000, 1000, 0, 1},
		"a goal beyond what is listed":  {2 * listedAtMost, 10 * listedAtMost, 3 * listedAtMost, 3 * listedAtMost, listedAtMost, 1},
		"the pods on their way suffice": {2_000_000, 1_500_000, 1000, 2_000_000, listedAtMost, 0},
	} {
		w := newWorld(t, Config{Policy: planner.Policy{MaxInFlight: c.cap}}, gpuGroup("gpu", 0, 0, 1<<31-1))
		w.group("gpu").Replicas = c.replicas
		w.want(c.wanted, gpu(1))
		d := w.cycle()
		if got := w.group("gpu").Replicas; got != c.want || len(d.Snapshot.Nodes) != c.listed {
			t.Errorf("%s: %d replicas and %d nodes listed, want %d and %d", name, got, len(d.Snapshot.Nodes), c.want, c.listed)
		}
		w.emitted(addon.ReasonInFlightCap, c.capped, name)
	}
}
