package controller

import (
	"fmt"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
