package planner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// rayCluster has one group of 4-core workers.
func rayCluster(replicas, least, most int) nodepool.Cluster {
	return nodepool.Cluster{IdleTimeout: time.Minute, Groups: []nodepool.WorkerGroup{
		{Name: "cpu", Resources: plannertest.Bundle(4, 0, 0), Replicas: replicas, Min: least, Max: most, NumOfHosts: 1},
	}}
}

func TestAMinimumAboveReplicasIsTheOperatorsToLaunch(t *testing.T) {
	plan := Compute(SnapshotOf(rayCluster(1, 3, 5)), Policy{})
	if diff := cmp.Diff(map[string]int{}, plan.Launch); diff != "" || plan.Groups[0].Current != 3 {
		t.Errorf("launches %s with %d on the way, want 3", diff, plan.Groups[0].Current)
	}
}

func TestASuspendedRayClusterTakesNoLaunches(t *testing.T) {
	cluster := rayCluster(1, 1, 5)
	cluster.Suspended = true
	if got := SnapshotOf(cluster).Groups[0].Closed; got != "the RayCluster is suspended" {
		t.Errorf("closed = %q", got)
	}
}
