package decode

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// What Kueue writes into pod templates when it starts a job, and removes when it stops the job (Kueue v0.18,
// pkg/constants). Users do not write them.
const (
	PodSetLabel     = "kueue.x-k8s.io/podset"
	localQueueLabel = "kueue.x-k8s.io/local-queue-name"
)

// queueOf reads Kueue's queue from the RayCluster itself. KubeRay copies the labels of a RayJob or RayService to its
// RayCluster, and Kueue admits the parent instead of the child.
func queueOf(metadata, spec Fields) nodepool.Queue {
	queue := nodepool.Queue{Name: metadata.Texts("labels")[nodepool.QueueLabel], Elastic: elastic(spec)}
	if queue.Name == "" {
		return queue
	}
	queue.Mark = "label " + nodepool.QueueLabel + " on RayCluster " + metadata.Text("name")
	if parent := ownerOf(metadata); parent.Kind != "" {
		queue.Parent, queue.ParentUID = parent, controllerOf(metadata).UID
		queue.Mark += fmt.Sprintf(", which %s %s created", parent.Kind, parent.Name)
	}
	return queue
}

// admittedQueue reads what Kueue wrote into the pod templates: whether it did, and the queue, which is empty if Kueue
// names none. It is evidence only if an owner cannot be read, because a copied manifest may have old labels.
func admittedQueue(spec Fields) (queue string, admitted bool) {
	for _, template := range podTemplates(spec) {
		labels := template.Object("metadata").Texts("labels")
		if labels[PodSetLabel] != "" {
			return labels[localQueueLabel], true
		}
	}
	return "", false
}

// elastic reports whether every pod template, including the head's, has Kueue's gate.
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
