package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

// pending returns the only pod on its way in a decision's snapshot.
func (w *world) pending() *planner.Node {
	w.t.Helper()
	var found []*planner.Node
	for _, n := range w.cycle().Snapshot.Nodes {
		if n.State == planner.Pending && !n.Expected {
			found = append(found, &n)
		}
	}
	if len(found) != 1 || found[0].Arrival == nil {
		w.t.Fatalf("%d pods are on their way, want one with its stage", len(found))
	}
	return found[0]
}

func TestAWorkerIsExpectedAsTheOthersOfItsGroupCame(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 9))
	w.want(3, gpu(1))
	w.cycle()
	w.operate()
	created := w.now
	w.after(time.Second)
	w.pass(59 * time.Second)
	for i := range 3 {
		w.start(i)
	}
	w.cycle()
	w.pass(10 * time.Second)
	w.joinAll()
	w.cycle()
	for i := range 3 {
		w.busy(w.pod(i))
	}
	w.want(1, gpu(1))
	w.cycle()
	w.after(10 * time.Second) // Ray's report may lag behind what it has just placed
	w.operate()
	if got := w.pending(); got.Arrival.Stage != arrival.WaitsForNode || got.Arrival.ExpectedAt.Sub(got.Since) != 70*time.Second {
		t.Errorf("without a node: %+v, want it 70 s after %v", got.Arrival, got.Since)
	}
	w.pass(20 * time.Second)
	w.start(3)
	if got := w.pending(); got.Arrival.Stage != arrival.JoiningRay || got.Arrival.ExpectedAt.Sub(w.now) != 10*time.Second {
		t.Errorf("with a node: %+v, want it 10 s after %v", got.Arrival, w.now)
	}
	for i := range 3 {
		w.kube.cluster.Workers[i].ReadyAt = created.Add(75 * time.Second)
	}
	w.restart(Config{})
	if got := w.pending().Arrival; got.ExpectedAt.Sub(w.now) != 15*time.Second {
		t.Errorf("after a restart: %+v, want it 15 s after %v, as the pods say", got, w.now)
	}
}
