package doctor

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// gangFloorMoves reports what makes new workers wait for others: a gang that grows with each launch, or that stays as
// large as it was created (docs/reference/facts.md#gang-floor).
func gangFloorMoves(x *inventory, o *Object, report reporter) {
	flag, mode := o.raySpec().Get("enableInTreeAutoscaling"), o.Mode()
	if mode != nodepool.Managed && mode != nodepool.Shadow && !flag.Flag() {
		return // nothing scales it
	}
	labels := o.Root().Texts("metadata", "labels")
	scheduler := x.batchScheduler(o)
	ofJob := o.Kind == "RayJob" || labels["ray.io/originated-from-crd"] == "RayJob" // the job's spec counts
	if scheduler == "volcano" && !flag.Flag() && !ofJob {
		report(occurrence{Object: o, Path: flag.Path(), Fix: x.park(o),
			Seen: orNotSet(flag.String()) + ", and the scheduler is Volcano"})
	}
	_, gang := labels["ray.io/gang-scheduling-enabled"]
	for i, group := range o.raySpec().Items("workerGroupSpecs") {
		if i >= len(o.Cluster.Groups) {
			return
		}
		g := &o.Cluster.Groups[i]
		switch {
		case strings.HasPrefix(scheduler, "scheduler-plugins") && gang && !o.Root().Has("metadata", "uid") &&
			g.Replicas > g.Min:
			report(occurrence{Object: o, Path: group.Path("replicas"),
				Seen: fmt.Sprintf("%d, minReplicas %d, and the scheduler is coscheduling", g.Replicas, g.Min),
				Why: "the operator writes minMember of the PodGroup once, from replicas: when there are fewer pods " +
					"later, no new pod starts",
				Fix: patch(o, set(o, group.Path("replicas"), int64(g.Min)))})
		case scheduler == "kai-scheduler" && g.Min == 0 && g.Max > 0:
			report(occurrence{Object: o, Path: group.Path("minReplicas"), Seen: "0, and the scheduler is KAI",
				Why: "KAI takes replicas as the minimum of a group without minReplicas, so that new workers wait " +
					"until all of the group fit",
				Fix: patch(o, set(o, group.Path("minReplicas"), int64(1)), set(o, group.Path("replicas"),
					int64(max(1, g.Replicas)))).Hint("that keeps one worker")})
		}
	}
}

// batchScheduler returns the scheduler of the pods of the RayCluster: that of its head pod, or the operator's flag, or
// what the object says of it.
func (x *inventory) batchScheduler(o *Object) string {
	if head := x.headPod(o); head != nil {
		return head.Root().Text("spec", "schedulerName")
	}
	for _, deployment := range x.ByKind["Deployment"] {
		words := deployment.arguments("kuberay/operator")
		if name := flagIn(words, "batch-scheduler"); name != "" {
			return name
		}
	}
	for label := range o.Root().Texts("metadata", "labels") {
		switch {
		case strings.HasPrefix(label, "volcano.sh/"):
			return "volcano"
		case label == "kai.scheduler/queue":
			return "kai-scheduler"
		}
	}
	return o.raySpec().Text("headGroupSpec", "template", "spec", "schedulerName")
}
