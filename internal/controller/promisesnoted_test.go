package controller

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestWhatAnotherProcessHasOnItsWayIsReadFromItsPodsAndReplicas(t *testing.T) {
	other := &nodepool.Cluster{Key: keyOf("other"), Groups: []nodepool.WorkerGroup{
		{Name: "gpu", Replicas: 3, Max: 9, NumOfHosts: 2}, {Name: "cpu", Replicas: 1, Max: 9, NumOfHosts: 1},
	}, Workers: []nodepool.Worker{
		{Pod: "a", Group: "gpu", CreatedAt: start},
		{Pod: "b", Group: "gpu", CreatedAt: start, Counted: true, Running: true},
		{Pod: "c", Group: "gpu", CreatedAt: start, Terminating: true},
		{Pod: "d", Group: "cpu", CreatedAt: start, Counted: true},
	}}
	own := ranked("own", 0)
	var r promises
	r.Note(other, start)
	before := r.Before(own, afterStart)
	if len(before) != 1 || before[0].Group != "gpu" || before[0].Pods != 5 {
		t.Errorf("promised are %v, want 5 pods of gpu: one that waits and four that the operator has not made", before)
	}
	for what, set := range map[string]*bool{"suspended": &other.Suspended, "deleted": &other.Deleting,
		"managed in another Kubernetes cluster": &other.ManagedElsewhere} {
		*set = true
		r.Note(other, start)
		if before := r.Before(own, afterStart.Add(keptFor)); len(before) != 0 {
			t.Errorf("a RayCluster that is %s has %v on its way", what, before)
		}
		*set = false
	}
}

func TestGroupsThatTheOperatorLeavesAloneHaveNoMissingPodsOnTheirWay(t *testing.T) {
	for what, prevent := range map[string]func(*nodepool.Cluster){
		"a suspended group":                func(c *nodepool.Cluster) { c.Groups[0].Suspended = true },
		"a broken group":                   func(c *nodepool.Cluster) { c.Groups[0].Broken = true },
		"a spec that the operator rejects": func(c *nodepool.Cluster) { c.Refused = true },
	} {
		other := &nodepool.Cluster{Key: keyOf("other"),
			Groups:  []nodepool.WorkerGroup{{Name: "gpu", Replicas: 4, Max: 9, NumOfHosts: 1}},
			Workers: []nodepool.Worker{{Pod: "a", Group: "gpu", CreatedAt: start}}}
		prevent(other)
		var r promises
		r.Note(other, start)
		if before := r.Before(ranked("own", 0), afterStart); len(before) != 1 || before[0].Pods != 1 {
			t.Errorf("with %s, promised are %v, want the pod that waits, and not the three that nobody makes", what, before)
		}
	}
}
