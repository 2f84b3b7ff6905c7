package controller

import (
	"fmt"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// TestAGroupThatIsRenamedAgainAndAgainTakesNoMoreMemory: nothing remains of a name that has no pods.
func TestAGroupThatIsRenamedAgainAndAgainTakesNoMoreMemory(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 2), gpuGroup("stays", 1, 0, 2))
	r := w.c.record(key)
	for i := range 20 {
		name := fmt.Sprintf("gpu-%d", i)
		w.kube.cluster.Groups[0].Name = name
		w.kube.cluster.Generation++
		w.kube.cluster.ObservedGeneration++
		r.reverts.Wrote(w.kube.cluster.Generation, []nodepool.Target{{Group: name, Replicas: w.kube.cluster.Groups[0].Replicas}})
		r.numGPUsWrites.Wrote(nodepool.NumGPUsTarget{Group: name}, w.now)
		w.after(time.Second)
	}
	if len(r.shapes) != 2 || r.shapes["stays"] == nil || len(r.breakers) > 2 {
		t.Errorf("%d shapes and %d breakers for 2 groups", len(r.shapes), len(r.breakers))
	}
	remembered := 0
	count := func(string) bool { remembered++; return false }
	r.reverts.Forget(count)
	r.numGPUsWrites.Forget(count)
	if remembered > 2 {
		t.Errorf("%d writes of groups are remembered, want those of one", remembered)
	}
}
