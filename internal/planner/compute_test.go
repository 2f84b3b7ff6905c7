package planner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// rayCluster has one group of 4-core workers.
func rayCluster(replicas, least, most int) nodepool.Cluster {
	return nodepool.Cluster{IdleTimeout: time.Minute, Groups: []nodepool.WorkerGroup{
		{Name: "cpu", Resources: bundleOf(4, 0, 0), Replicas: replicas, Min: least, Max: most, NumOfHosts: 1},
	}}
}

func TestAMinimumAboveReplicasIsTheOperatorsToLaunch(t *testing.T) {
	plan := Compute(SnapshotOf(rayCluster(1, 3, 5)), Policy{})
	if diff := cmp.Diff(map[string]int{}, plan.Launch); diff != "" || plan.Groups[0].Current != 3 {
		t.Errorf("launches %s with %d on the way, want 3", diff, plan.Groups[0].Current)
	}
}

func TestAGatedGroupTakesNoLaunchesButThoseOfItsMinimum(t *testing.T) {
	cluster := rayCluster(1, 3, 5)
	cluster.Groups[0].ScaleGates = []string{"kueue.k8s.io/quota-exceeded"}
	s := SnapshotOf(cluster)
	s.Requests = []raydemand.Request{{Bundle: bundleOf(4, 0, 0), Count: 9}}
	plan := Compute(s, Policy{})
	if len(plan.Launch) > 0 || plan.Groups[0].Current != 3 || plan.Groups[0].Reasons[0].Code != model.CodeScaleGate ||
		len(plan.InfeasibleRequests) != 1 || plan.InfeasibleRequests[0].Reason.Code != Capped {
		t.Errorf("%+v", plan)
	}
}

func TestASuspendedRayClusterTakesNoLaunches(t *testing.T) {
	cluster := rayCluster(1, 1, 5)
	cluster.Suspended = true
	if got := SnapshotOf(cluster).Groups[0].Closed; got != "the RayCluster is suspended" {
		t.Errorf("closed = %q", got)
	}
}
