package model

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestThePoolsOfAGroupAreThoseThatItsPodsCanLandOn(t *testing.T) {
	more := int64(2)
	g := nodepool.WorkerGroup{
		Slices:   []landing.Slice{{Resource: "nvidia.com/mig-1g.5gb", UnitsPerPod: 2}},
		PoolPods: []landing.PoolPods{{Pool: "a", PerNode: 3, Holds: 3, MayAddPods: &more}, {Pool: "b", PerNode: 1}},
	}
	want := []landing.GroupPool{
		{Name: "a", MaxPods: new(int64(5)), Resource: "nvidia.com/mig-1g.5gb", Units: 2}, {Name: "b", Resource: "nvidia.com/mig-1g.5gb", Units: 2},
	}
	if diff := gocmp.Diff(want, poolsOf(g)); diff != "" {
		t.Error(diff)
	}
	g.Slices, g.Pod.Requests = nil, landing.Quantities{"cpu": raydemand.Whole(4)}
	if resource, units := contended(g); resource != "cpu" || units != 4000 {
		t.Errorf("without GPUs: %d of %s", units, resource)
	}
}
