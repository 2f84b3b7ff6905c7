package decode

import (
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// IdleTerminationUnexecuted says that a field says when an idle RayCluster ends. Only Ray's own autoscaler carries it
// out, and that does not run.
const IdleTerminationUnexecuted = "idle-termination-unexecuted"

// reportIdleTermination reports the fields by which Ray's autoscaler v2 ends a RayCluster without drivers: those of ray
// #65763 with kuberay #5210, and of ray #63465. Before there is a head pod, the mode and the flag say who will scale.
func reportIdleTermination(spec Fields, cluster *nodepool.Cluster) {
	head := cluster.Head
	if head.Sidecar != nodepool.NoAutoscaler && head.Sidecar != nodepool.OurSidecar ||
		head.Pod == "" && cluster.InTreeAutoscaling && cluster.Mode != nodepool.Managed {
		return
	}
	for _, path := range [][]string{{"idleTerminationOptions"}, {"autoscalerOptions", "noDriverTimeoutSeconds"}} {
		if v := spec.Get(path...); v.Has() {
			spec.Report.Add(raydemand.Warning, IdleTerminationUnexecuted, v.Path().String(), v.String(),
				"only Ray's own autoscaler ends a RayCluster by it, and that does not scale this one",
				"remove it, and set idle.suspendAfter or idle.deleteAfter of a capacity policy, which count actors as "+
					"work, too")
		}
	}
}
