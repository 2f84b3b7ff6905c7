package kube

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// What Kueue writes into pod templates when it starts a job, and removes when it stops the job (Kueue v0.18,
// pkg/constants). Users write neither.
const (
	podSetLabel     = "kueue.x-k8s.io/podset"
	localQueueLabel = "kueue.x-k8s.io/local-queue-name"
)

// queueOf reads Kueue's hold on a RayCluster from the object itself. KubeRay copies the labels of a RayJob or
// RayService to its RayCluster, where Kueue admits the parent and not the child.
func queueOf(metadata, spec fields) nodepool.Queue {
	queue := nodepool.Queue{Name: metadata.texts("labels")[nodepool.QueueLabel], Elastic: elastic(spec)}
	if queue.Name == "" {
		return queue
	}
	queue.Mark = "label " + nodepool.QueueLabel + " on RayCluster " + metadata.text("name")
	if parent := ownerOf(metadata); parent.Kind != "" {
		queue.Parent = parent
		queue.Mark += fmt.Sprintf(", which %s %s made", parent.Kind, parent.Name)
	}
	return queue
}

// admittedQueue reads what Kueue has written into the pod templates: whether it did, and the queue, empty where it
// names none. It is evidence where an owner cannot be read. Where owners can be read it proves nothing: a copied
// manifest may carry old labels.
func admittedQueue(spec fields) (queue string, admitted bool) {
	for _, template := range podTemplates(spec) {
		labels := template.object("metadata").texts("labels")
		if labels[podSetLabel] != "" {
			return labels[localQueueLabel], true
		}
	}
	return "", false
}

// elastic reports whether every pod template, the head's too, has Kueue's gate.
func elastic(spec fields) bool {
	return !slices.ContainsFunc(podTemplates(spec), func(template fields) bool {
		return !slices.ContainsFunc(template.object("spec").objects("schedulingGates"), func(gate fields) bool {
			return gate.text("name") == nodepool.ElasticGate
		})
	})
}

func podTemplates(spec fields) []fields {
	templates := []fields{spec.object("headGroupSpec").object("template")}
	for _, group := range spec.objects("workerGroupSpecs") {
		templates = append(templates, group.object("template"))
	}
	return templates
}

// queueGuards test that nobody has queued the RayCluster meanwhile, by its own label or by an owner that adopts it.
func queueGuards(metadata fields) []operation {
	owners := operation{"test", "/metadata/ownerReferences", metadata.values["ownerReferences"]}
	if !metadata.has("labels") {
		// A path below an absent map cannot be tested.
		return []operation{{"test", "/metadata/labels", nil}, owners}
	}
	label := metadata.object("labels").values[nodepool.QueueLabel]
	return []operation{{"test", "/metadata/labels/" + escape(nodepool.QueueLabel), label}, owners}
}
