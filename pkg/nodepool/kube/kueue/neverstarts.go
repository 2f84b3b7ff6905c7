package kueue

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// NeverStarts says that Kueue cannot start the RayCluster again, and does not try any more.
const NeverStarts = "queued-never-starts"

// failedToStart is the reason of finished for a Workload that Kueue could not start (v0.18.3,
// apis/kueue/v1beta2/workload_types.go).
const failedToStart = "FailedToStart"

// neverStarts finds a RayCluster that Kueue has suspended and finished. Kueue v0.18.3 does so after it evicts a
// RayCluster that grew: the annotations in its pod templates name an earlier Workload. v0.18.4 removes the cause.
func (all workloads) neverStarts(cluster *nodepool.Cluster) *raydemand.Finding {
	last := all.newest(func(*workload) bool { return true })
	own := cluster.Queue.Parent.Kind == ""
	if !own || last == nil || last.unfinished() || !cluster.Suspended {
		return nil
	}
	end := meta.FindStatusCondition(last.Status.Conditions, finished)
	if end.Reason != failedToStart {
		return nil
	}
	patch := `[{"op": "remove", "path": "/spec/headGroupSpec/template/metadata/annotations"}`
	for i := range cluster.Groups {
		patch += fmt.Sprintf(`, {"op": "remove", "path": "/spec/workerGroupSpecs/%d/template/metadata/annotations"}`,
			cluster.Groups[i].Index)
	}
	return &raydemand.Finding{
		Code: NeverStarts, Severity: raydemand.Error, Object: "RayCluster " + cluster.Key.String(),
		Field: "spec.suspend",
		Seen:  "true, and Workload " + last.Metadata.Name + " is Finished: " + decode.Short(end.Message),
		Why: "Kueue could not start it again and does not try any more: the annotations that Kueue left in its pod " +
			"templates contradict its new Workload (Kueue before 0.18.4)",
		Fix: fmt.Sprintf("kubectl patch raycluster %s -n %s --type=json -p '%s]'; keep annotations of your own",
			cluster.Key.Name, cluster.Key.Namespace, patch),
	}
}
