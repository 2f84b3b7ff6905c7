package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// During an incremental upgrade, which KubeRay 1.7 has on by default, a RayService has two RayClusters. The operator
// moves Serve's target capacity in steps, so replicas begin in one and end in the other.
func TestBothRayClustersOfARayServiceAreScaledByWhatTheyServe(t *testing.T) {
	active, pending := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4)), newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	for _, w := range []*world{active, pending} {
		w.kube.cluster.Owner, w.kube.cluster.OwnedBy = nodepool.Owner{Kind: "RayService", Name: "chat"}, "RayService chat"
	}
	active.works(active.pod(0), active.pod(1)) // replicas of Serve are actors

	for step := 1; step <= 2; step++ {
		pending.want(1, gpu(1))
		pending.after(time.Second)
		if got := pending.lastChange(); got.Replicas != step || len(got.WorkersToDelete) > 0 {
			t.Fatalf("step %d of the new RayCluster: %+v", step, got)
		}
		pending.operate()
		pending.joinAll()
		pending.want(0, nil)
		pending.works(pending.pod(step - 1))
		for range 12 {
			active.after(10 * time.Second)
			pending.after(10 * time.Second)
		}
		active.nothingWritten("what is left of the old RayCluster serves")
		pending.nothingWritten("the new RayCluster serves")

		leaves := active.pod(0)
		n := active.node(leaves)
		n.Status, n.Idle, n.Activity, n.Available = raydemand.Idle, 0, nil, n.Total.Clone()
		active.after(61 * time.Second)
		active.after(100 * time.Millisecond)
		want := nodepool.Target{Group: "gpu", From: 3 - step, Replicas: 2 - step, WorkersToDelete: []string{leaves}}
		if diff := cmp.Diff(want, active.lastChange()); diff != "" {
			t.Fatalf("step %d of the old RayCluster (-want +got):\n%s", step, diff)
		}
		active.operate()
		active.after(100 * time.Millisecond)
		active.kube.changes, active.ray.drains = nil, nil
	}
}
