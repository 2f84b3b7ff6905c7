package doctor

import (
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// elasticHint is the second way out of a queue that keeps Heliostat away. A copy of what runs carries Kueue's labels in
// its pod templates, and Kueue 0.18 then gives up on starting it (Workload Finished, seen).
const elasticHint = "that ends its work; or create it from your own manifest with the annotation " + nodepool.ElasticAnnotation +
	": \"true\", with Kueue's feature gate ElasticJobsViaWorkloadSlices on: replicas can then change without a restart, and " +
	"Heliostat does not scale it yet"

// queues are checks of Kueue's marks (docs/howto/kueue.md).
var queues = []Check{
	{
		Code: "queued-by-kueue", Severity: raydemand.Info,
		Why: "Kueue queues it and it is not elastic: any change of replicas makes Kueue restart the whole RayCluster, head included, so Heliostat never " +
			"patches it, whatever its mode is",
		look: perCluster(func(x *exam, o *Object, tell func(sight)) {
			if queue := o.Cluster.Queue; queue.Queued() && !queue.Elastic && !x.hasParent(o) {
				tell(o.queued(elasticHint))
			}
		}),
	},
	{
		Code: "elastic-queued-by-kueue", Severity: raydemand.Info,
		Why: "Kueue queues it as an elastic one, and Heliostat does not scale elastic ones yet, so it never patches it, whatever its mode is",
		look: perCluster(func(x *exam, o *Object, tell func(sight)) {
			if queue := o.Cluster.Queue; queue.Queued() && queue.Elastic && !x.hasParent(o) {
				tell(o.queued("that ends its work"))
			}
		}),
	},
	{
		Code: "elastic-without-queue", Severity: raydemand.Warning,
		Why: "Kueue's webhook gives every pod the scheduling gate " + nodepool.ElasticGate +
			" for this annotation, and without the label " + nodepool.QueueLabel +
			" nobody takes the gate away, so no pod ever runs",
		look: perCluster(func(x *exam, o *Object, tell func(sight)) {
			v := o.root().get("metadata", "annotations", nodepool.ElasticAnnotation)
			if v.text() != "true" || o.Cluster.Queue.Queued() || o.controlled() {
				return
			}
			s := sight{of: o, at: v.at, seen: "true, and no label " + nodepool.QueueLabel, fix: o.patch(remove(v.at)).
				hint("to have it queued, create it again with the label")}
			if gates := o.elasticGates(); len(gates) > 0 {
				ops := []op{remove(v.at)}
				for _, gate := range gates {
					ops = append(ops, remove(gate.at))
				}
				s.fix.ops = ops
				if o.Kind == "RayCluster" {
					s.fix = s.fix.then("kubectl delete pod -n " + quote(o.Namespace) + " -l ray.io/cluster=" +
						quote(o.Name))
				}
			}
			tell(s)
		}),
	},
}

// queued tells of the label. Kueue does not let the label of a running RayCluster be changed, so the fix creates it
// again without.
func (o *Object) queued(hint string) sight {
	v := o.root().get("metadata", "labels", nodepool.QueueLabel)
	s := sight{of: o, at: v.at, seen: v.String()}
	if mode := o.root().get("metadata", "annotations", modeAnnotation).text(); mode == string(nodepool.Managed) {
		s.severity = raydemand.Warning
		s.seen += ", and " + modeAnnotation + " is managed"
	}
	again := *o
	if parent := o.Cluster.Queue.Parent; parent.Kind != "" {
		again.Kind, again.Name = parent.Kind, parent.Name
		s.why = "Kueue queues its " + parent.Kind +
			", which holds the quota: further workers of the RayCluster would run outside of it, or wait behind a gate, so " +
			"Heliostat never patches the RayCluster"
	}
	s.fix = run(again.kubectl("get", "-o", "yaml") + " | kubectl label --local -f - " + nodepool.QueueLabel +
		"- -o yaml | kubectl replace --force -f -").hint(hint)
	return s
}

// hasParent reports whether the RayJob or RayService that Kueue queues is among the objects: then the finding is told
// of that.
func (x *exam) hasParent(o *Object) bool {
	parent := o.Cluster.Queue.Parent
	for _, other := range x.byKind[parent.Kind] {
		if other.Namespace == o.Namespace && other.Name == parent.Name {
			return true
		}
	}
	return false
}

// controlled reports whether another object made this one: Kueue may queue that.
func (o *Object) controlled() bool {
	for _, reference := range o.root().get("metadata", "ownerReferences").items() {
		if reference.get("controller").flag() {
			return true
		}
	}
	return false
}

// elasticGates are Kueue's gates in the pod templates.
func (o *Object) elasticGates() []value {
	templates := []value{o.spec().get("headGroupSpec", "template", "spec")}
	for _, group := range o.spec().get("workerGroupSpecs").items() {
		templates = append(templates, group.get("template", "spec"))
	}
	var found []value
	for _, template := range templates {
		for _, gate := range template.get("schedulingGates").items() {
			if gate.get("name").text() == nodepool.ElasticGate {
				found = append(found, gate)
			}
		}
	}
	return found
}
