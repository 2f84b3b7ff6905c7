package controller

import (
	"fmt"
	"testing"
	"time"

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

// planned computes plans at once.
func planned(s planner.Snapshot) (planner.Plan, error) { return planner.Compute(s, s.Policy), nil }

// requests are for so many GPUs, one each.
func requests(count int64) []raydemand.Request {
	return []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: count}}
}

// TestAllForgetAGroupThatIsRenamed has whole cycles: features forget groups too.
func TestAllForgetAGroupThatIsRenamed(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 2), gpuGroup("stays", 1, 0, 2))
	r := w.c.record(key)
	for _, name := range []string{"gpu-1", "gpu-2", "gpu-3"} {
		w.kube.cluster.Groups[0].Name = name
		r.numGPUs.wrote(nodepool.NumGPUsTarget{Group: name}, w.now)
		w.after(time.Second)
	}
	if len(r.numGPUs.writes) != 1 {
		t.Errorf("numbers of %d groups are remembered, want that of the one that exists", len(r.numGPUs.writes))
	}
}

// TestAGroupThatIsRenamedAgainAndAgainTakesNoMoreMemory: nothing remains of a name that has no pods.
func TestAGroupThatIsRenamedAgainAndAgainTakesNoMoreMemory(t *testing.T) {
	m, s := newMemory(), &Config{}
	v := observe.View{Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	stays := nodepool.WorkerGroup{Name: "stays", NumOfHosts: 1, Replicas: 1, Max: 2}
	for i := range 20 {
		renamed := nodepool.WorkerGroup{Name: fmt.Sprintf("gpu-%d", i), NumOfHosts: 1, Max: 2}
		v.Cluster = nodepool.Cluster{UID: "uid-1", Generation: int64(i + 1), ObservedGeneration: int64(i + 1),
			Groups:  []nodepool.WorkerGroup{renamed, stays},
			Workers: []nodepool.Worker{{Pod: "worker", Group: "stays", Running: true}}}
		v.State.Nodes = []raydemand.Node{{ID: raydemand.NodeID{1}, Instance: "worker", Group: "stays",
			Status: raydemand.Idle, Total: raydemand.Bundle{raydemand.GPU: raydemand.One}}}
		v.Members = observe.Join(v.Cluster, v.State.Nodes)
		m.Patches.Wrote(v.Cluster.Generation, []nodepool.Target{{Group: renamed.Name}}, nil)
		gone := m.Remember(&v, s)
		if i > 0 && (gone == nil || !gone(fmt.Sprintf("gpu-%d", i-1)) || gone(renamed.Name) || gone("stays")) {
			t.Fatalf("after %d names, the loop is not asked to forget exactly the one before", i+1)
		}
		v.Now = v.Now.Add(time.Second)
	}
	if len(m.shapes) != 2 || m.shapes["stays"] == nil || len(m.breakers) > 2 {
		t.Errorf("%d shapes and %d breakers for 2 groups", len(m.shapes), len(m.breakers))
	}
	remembered := 0
	m.Patches.reverts.Forget(func(string) bool { remembered++; return false })
	if remembered > 1 {
		t.Errorf("%d groups that were patched are remembered, want one", remembered)
	}
}
