package rayobject

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// What Kueue writes into pod templates when it starts a job, and removes when it stops the job (Kueue v0.18,
// pkg/constants). Users write neither.
const (
	PodSetLabel     = "kueue.x-k8s.io/podset"
	localQueueLabel = "kueue.x-k8s.io/local-queue-name"
)

// queueOf reads Kueue's hold on a RayCluster from the object itself. KubeRay copies the labels of a RayJob or
// RayService to its RayCluster, where Kueue admits the parent and not the child.
func queueOf(metadata, spec Fields) nodepool.Queue {
	queue := nodepool.Queue{Name: metadata.Texts("labels")[nodepool.QueueLabel], Elastic: elastic(spec)}
	if queue.Name == "" {
		return queue
	}
	queue.Mark = "label " + nodepool.QueueLabel + " on RayCluster " + metadata.Text("name")
	if parent := ownerOf(metadata); parent.Kind != "" {
		queue.Parent = parent
		queue.Mark += fmt.Sprintf(", which %s %s made", parent.Kind, parent.Name)
	}
	return queue
}

// admittedQueue reads what Kueue has written into the pod templates: whether it did, and the queue, empty where it
// names none. It is evidence where an owner cannot be read. Where owners can be read it proves nothing: a copied
// manifest may carry old labels.
func admittedQueue(spec Fields) (queue string, admitted bool) {
	for _, template := range podTemplates(spec) {
		labels := template.Object("metadata").Texts("labels")
		if labels[PodSetLabel] != "" {
			return labels[localQueueLabel], true
		}
	}
	return "", false
}

// elastic reports whether every pod template, the head's too, has Kueue's gate.
func elastic(spec Fields) bool {
	return !slices.ContainsFunc(podTemplates(spec), func(template Fields) bool {
		return !slices.ContainsFunc(template.Object("spec").Objects("schedulingGates"), func(gate Fields) bool {
			return gate.Text("name") == nodepool.ElasticGate
		})
	})
}

func podTemplates(spec Fields) []Fields {
	templates := []Fields{spec.Object("headGroupSpec").Object("template")}
	for _, group := range spec.Objects("workerGroupSpecs") {
		templates = append(templates, group.Object("template"))
	}
	return templates
}
