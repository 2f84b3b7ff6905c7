package promise

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestWhatAnotherProcessHasOnItsWayIsReadFromItsPodsAndReplicas(t *testing.T) {
	other := &nodepool.Cluster{Key: key("other"), Groups: []nodepool.WorkerGroup{
		{Name: "gpu", Replicas: 3, Max: 9, NumOfHosts: 2}, {Name: "cpu", Replicas: 1, Max: 9, NumOfHosts: 1},
	}, Workers: []nodepool.Worker{
		{Pod: "a", Group: "gpu", CreatedAt: start},
		{Pod: "b", Group: "gpu", CreatedAt: start, Counted: true, Running: true},
		{Pod: "c", Group: "gpu", CreatedAt: start, Terminating: true},
		{Pod: "d", Group: "cpu", CreatedAt: start, Counted: true},
	}}
	own := ranked("own", 0)
	var r Registry
	r.Note(other, start)
	before := r.Before(own, later)
	if len(before) != 1 || before[0].Group != "gpu" || before[0].Pods != 5 {
		t.Errorf("promised are %v, want 5 pods of gpu: one that waits and four that the operator has not made", before)
	}
	other.Suspended = true
	r.Note(other, start)
	if before := r.Before(own, later.Add(keptFor)); len(before) != 0 {
		t.Errorf("a suspended RayCluster has %v on its way", before)
	}
}
