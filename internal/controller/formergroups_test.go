package controller

import (
	"fmt"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// TestTheNumbersOfAGroupThatIsRenamedAgainAndAgainAreForgotten: nothing remains of a name that has no pods.
func TestTheNumbersOfAGroupThatIsRenamedAgainAndAgainAreForgotten(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 2), gpuGroup("stays", 1, 0, 2))
	r := w.c.record(key)
	for i := range 20 {
		name := fmt.Sprintf("gpu-%d", i)
		w.kube.cluster.Groups[0].Name = name
		w.kube.cluster.Generation++
		w.kube.cluster.ObservedGeneration++
		r.numGPUs.wrote(nodepool.NumGPUsTarget{Group: name}, w.now)
		w.after(time.Second)
	}
	remembered := 0
	count := func(string) bool { remembered++; return false }
	r.numGPUs.forget(count)
	if remembered > 2 {
		t.Errorf("%d groups are remembered, want at most the two that exist", remembered)
	}
}
