package doctor

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// elasticHint names the second way to let Heliostat scale a queued RayCluster. It needs your manifest: a copy of the
// running object has Kueue's labels in its pod templates, and Kueue 0.18 never starts such a copy (its Workload is
// Finished; measured).
const elasticHint = "that ends its work; or create it from your own manifest with the annotation " +
	nodepool.ElasticAnnotation + ": \"true\" and Kueue's feature gate ElasticJobsViaWorkloadSlices: " +
	"Heliostat then scales it within its quota"

// mostQueuedGroups is how many worker groups Kueue queues before v0.19, and mostGroups since: a Workload has at most 10
// and 18 sets of pods, with the head's (MaxPodSets in pkg/controller/jobframework/constants.go).
const (
	mostQueuedGroups = 9
	mostGroups       = 17
)

// queuedByKueue reports queued objects that are not elastic. A manifest with the annotation will be, if it is created.
func queuedByKueue(x *inventory, o *Object, report reporter) {
	if heldByKueue(o) && !x.hasQueuedParent(o) {
		report(queued(o, elasticHint))
	}
}

func heldByKueue(o *Object) bool {
	queue := o.Cluster.Queue
	toCreate := !o.Root().Has("metadata", "uid") && elasticAnnotation(o).Text() == "true"
	return queue.Queued() && !queue.Elastic && !toCreate
}

// kueueRefuses reports what the webhooks of Kueue 0.18 and 0.19 refuse in a queued object
// (pkg/controller/jobs/raycluster/common.go, ValidateCreate; rayjob/rayjob_webhook.go).
func kueueRefuses(x *inventory, o *Object, report reporter) {
	if !o.Cluster.Queue.Queued() || x.Input.Stored || x.hasQueuedParent(o) || o.Root().Has("metadata", "uid") {
		return
	}
	manifest := *o
	manifest.Generated = true // the fix changes the manifest: what Kueue refuses is not stored
	refuse := func(v fieldpath.Value, why string, repair fix) {
		repair.object = &manifest
		report(occurrence{Path: v.Path(), Seen: v.String(), More: why, Fix: repair})
	}
	if v := o.raySpec().Get("enableInTreeAutoscaling"); v.Flag() && elasticAnnotation(o).Text() != "true" {
		refuse(v, "only elastic ones may have in-tree autoscaling",
			set(elasticAnnotation(o).Path(), "true").Hint("and turn on Kueue's feature gate "+
				"ElasticJobsViaWorkloadSlices"))
	}
	if v := o.Root().Get("spec", "shutdownAfterJobFinishes"); o.Kind == "RayJob" && !v.Flag() {
		refuse(v, "a RayJob must delete its RayCluster when it has finished", set(v.Path(), true))
	}
	for _, group := range o.raySpec().Items("workerGroupSpecs") {
		if v := group.Get("groupName"); v.Text() == "head" {
			refuse(v, "the name is reserved for the head", edit("rename the group"))
		}
	}
}

// elasticQueuedByKueue reports elastic RayJobs and RayServices: for them Kueue makes further slices only if in-tree
// autoscaling is on.
func elasticQueuedByKueue(x *inventory, o *Object, report reporter) {
	queue := o.Cluster.Queue
	elastic := queue.Elastic || elasticAnnotation(o).Text() == "true"
	part := o.Kind != "RayCluster" || queue.Parent.Kind != ""
	if queue.Queued() && elastic && part && !o.raySpec().Flag("enableInTreeAutoscaling") && !x.hasQueuedParent(o) {
		report(queued(o, "that ends its work; or create it again with enableInTreeAutoscaling: true: Heliostat then "+
			"scales it within its quota"))
	}
}

func queuedGroupsTooMany(_ *inventory, o *Object, report reporter) {
	groups := o.raySpec().Get("workerGroupSpecs")
	n := len(groups.Items())
	if !o.Cluster.Queue.Queued() || n <= mostQueuedGroups {
		return
	}
	found := occurrence{Path: groups.Path(), Seen: fmt.Sprintf("%d groups", n),
		Fix: edit(fmt.Sprintf("remove or merge %d groups, or create it without the label %s", n-mostQueuedGroups,
			nodepool.QueueLabel))}
	if n > mostGroups {
		found.Severity = raydemand.Error
	}
	report(found)
}

func elasticAnnotation(o *Object) fieldpath.Value {
	return o.Root().Get("metadata", "annotations", nodepool.ElasticAnnotation)
}

// queued reports the label. Kueue forbids changes of the label on a running RayCluster.
func queued(o *Object, hint string) occurrence {
	label := o.Root().Get("metadata", "labels", nodepool.QueueLabel)
	found := occurrence{Object: o, Path: label.Path(), Seen: label.String()}
	if o.Mode() == nodepool.Managed {
		found.Severity = raydemand.Warning
		found.Seen += ", and " + modeAnnotation + " is managed"
	}
	again := o
	if parent := o.Cluster.Queue.Parent; parent.Kind != "" {
		again = &Object{Kind: parent.Kind, Namespace: o.Namespace, Name: parent.Name}
		found.Why = "Kueue queues its " + parent.Kind + ", which has the quota. Further workers of the RayCluster " +
			"would run outside of the quota or wait behind a gate, so Heliostat does not patch the RayCluster"
	}
	found.Fix = run(kubectl(again, "get", "-o", "yaml")).
		Hint("create it again without the label " + nodepool.QueueLabel + ": " + hint)
	return found
}

func elasticWithoutQueue(_ *inventory, o *Object, report reporter) {
	annotation := elasticAnnotation(o)
	if annotation.Text() != "true" || o.Cluster.Queue.Queued() || o.hasController() {
		return
	}
	patch := remove(annotation.Path()).Hint("also remove the gate from pod templates that have it, and delete " +
		"pods that wait for it; to have it queued, create it again with the label")
	report(occurrence{Path: annotation.Path(), Seen: "true, and no label " + nodepool.QueueLabel, Fix: patch})
}

// hasQueuedParent reports whether the RayJob or RayService that Kueue queues is among the objects.
func (x *inventory) hasQueuedParent(o *Object) bool {
	parent := o.Cluster.Queue.Parent
	return x.find(parent.Kind, o.Namespace, parent.Name) != nil
}

// hasController reports whether another object controls this one. Kueue may queue that object.
func (o *Object) hasController() bool {
	return slices.ContainsFunc(o.Root().Items("metadata", "ownerReferences"),
		func(reference fieldpath.Value) bool { return reference.Flag("controller") })
}

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
		report(occurrence{Path: flag.Path(), Fix: x.park(o),
			Seen: orNotSet(flag.String()) + ", and the scheduler is Volcano"})
	}
	_, gang := labels["ray.io/gang-scheduling-enabled"]
	for _, g := range o.groups() {
		switch w := g.Workers; {
		case w == nil:
		case strings.HasPrefix(scheduler, "scheduler-plugins") && gang && !o.Root().Has("metadata", "uid") &&
			w.Replicas > w.Min:
			report(occurrence{Path: g.Path("replicas"),
				Seen: fmt.Sprintf("%d, minReplicas %d, and the scheduler is coscheduling", w.Replicas, w.Min),
				Why: "the operator writes minMember of the PodGroup once, from replicas: when there are fewer pods " +
					"later, no new pod starts",
				Fix: set(g.Path("replicas"), int64(w.Min))})
		case scheduler == "kai-scheduler" && w.Min == 0 && w.Max > 0:
			report(occurrence{Path: g.Path("minReplicas"), Seen: "0, and the scheduler is KAI",
				Why: "KAI takes replicas as the minimum of a group without minReplicas, so that new workers wait " +
					"until all of the group fit",
				Fix: patch(change{g.Path("minReplicas"), 1},
					change{g.Path("replicas"), max(1, w.Replicas)}).Hint("that keeps one worker")})
		}
	}
}

// batchScheduler returns the scheduler of the pods of the RayCluster: that of its head pod, or the operator's flag, or
// what the object says of it.
func (x *inventory) batchScheduler(o *Object) string {
	if head := x.headPod(o); head != nil {
		return head.Root().Text("spec", "schedulerName")
	}
	_, operators := x.programs(operatorImage)
	for _, operator := range operators {
		if name := flagOf(operator, "batch-scheduler"); name != "" {
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
