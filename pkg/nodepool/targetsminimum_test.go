package nodepool_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAHugeMinimumIsReportedAndNeverWrittenIntoReplicas(t *testing.T) {
	group := nodepool.WorkerGroup{Name: "gpu", Replicas: 1, Min: math.MaxInt32, Max: math.MaxInt32, NumOfHosts: 1}
	for name, c := range map[string]struct {
		inTree  bool
		stored  []string
		leaving []string
		want    []nodepool.Target
	}{
		"replicas follow the pods that exist": {want: []nodepool.Target{{Group: "gpu", From: 1, Replicas: 3}}},
		"with in-tree autoscaling they stay":  {inTree: true},
		"a pod is replaced": {inTree: true, leaving: []string{"b"},
			want: []nodepool.Target{{Group: "gpu", From: 1, Replicas: 3, WorkersToDelete: []string{"b"}}}},
		"names are cleared": {inTree: true, stored: []string{"gone"},
			want: []nodepool.Target{{Group: "gpu", From: 1, Replicas: 3, WorkersToDelete: []string{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			group := group
			group.WorkersToDelete = c.stored
			cluster := nodepool.Cluster{InTreeAutoscaling: c.inTree, Groups: []nodepool.WorkerGroup{group}, Workers: pods("gpu", "a", "b", "c")}
			got, findings, err := nodepool.Targets(cluster, nil, c.leaving)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			if !slices.ContainsFunc(findings, func(f raydemand.Finding) bool { return f.Code == nodepool.MinimumImmense }) {
				t.Errorf("findings = %+v", findings)
			}
		})
	}
}
