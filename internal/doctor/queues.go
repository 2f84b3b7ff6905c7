package doctor

import (
	"fmt"

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
	queue := o.Cluster.Queue
	toCreate := !o.Root().Has("metadata", "uid") && elasticAnnotation(o).Text() == "true"
	if queue.Queued() && !queue.Elastic && !toCreate && !x.hasQueuedParent(o) {
		report(queued(o, elasticHint))
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
	n := len(o.raySpec().Items("workerGroupSpecs"))
	if !o.Cluster.Queue.Queued() || n <= mostQueuedGroups {
		return
	}
	found := occurrence{
		Object: o, Path: groups.Path(), Seen: fmt.Sprintf("%d groups", n),
		Fix: edit(o, fmt.Sprintf("remove or merge %d groups, or create it without the label %s", n-mostQueuedGroups,
			nodepool.QueueLabel)),
	}
	if n > mostGroups {
		found.Severity = raydemand.Error
	}
	report(found)
}

func elasticAnnotation(o *Object) fieldpath.Value {
	return o.Root().Get("metadata", "annotations", nodepool.ElasticAnnotation)
}

// queued reports the label. Kueue forbids changes of the label on a running RayCluster, so the fix creates the object
// again without the label.
func queued(o *Object, hint string) occurrence {
	label := o.Root().Get("metadata", "labels", nodepool.QueueLabel)
	found := occurrence{Object: o, Path: label.Path(), Seen: label.String()}
	if o.Mode() == nodepool.Managed {
		found.Severity = raydemand.Warning
		found.Seen += ", and " + modeAnnotation + " is managed"
	}
	again := *o
	if parent := o.Cluster.Queue.Parent; parent.Kind != "" {
		again.Kind, again.Name = parent.Kind, parent.Name
		found.Why = "Kueue queues its " + parent.Kind + ", which has the quota. Further workers of the RayCluster " +
			"would run outside of the quota or wait behind a gate, so Heliostat does not patch the RayCluster"
	}
	read, replace := kubectl(&again, "get", "-o", "yaml")+" | ", "kubectl replace --force -f -"
	if o.Generated {
		read, replace = "", "kubectl create -f -"
	}
	found.Fix = run(read + "kubectl label --local -f - " + nodepool.QueueLabel + "- -o yaml | " + replace).
		Hint(hint)
	return found
}

func elasticWithoutQueue(_ *inventory, o *Object, report reporter) {
	annotation := elasticAnnotation(o)
	if annotation.Text() != "true" || o.Cluster.Queue.Queued() || o.hasController() {
		return
	}
	operations := []operation{remove(annotation.Path())}
	gates := o.elasticGates()
	for _, gate := range gates {
		operations = append(operations, remove(gate.Path()))
	}
	patch := patch(o, operations...).Hint("to have it queued, create it again with the label")
	if len(gates) > 0 && o.Kind == "RayCluster" {
		patch = patch.Then("kubectl delete pod -n " + quote(o.Namespace) +
			" -l ray.io/cluster=" + quote(o.Name))
	}
	report(occurrence{
		Object: o, Path: annotation.Path(), Seen: "true, and no label " + nodepool.QueueLabel, Fix: patch,
	})
}
