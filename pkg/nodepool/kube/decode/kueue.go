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

// multiKueueOrigin is the label of what MultiKueue copies from another Kubernetes cluster.
const multiKueueOrigin = "kueue.x-k8s.io/multikueue-origin"

// queueOf reads Kueue's queue from the RayCluster itself. KubeRay copies the labels of a RayJob or RayService to its
// RayCluster, and Kueue admits the parent instead of the child.
func queueOf(metadata, spec Fields) nodepool.Queue {
	labels := metadata.Texts("labels")
	queue := nodepool.Queue{Name: labels[nodepool.QueueLabel], Elastic: elastic(spec)}
	if queue.Name == "" {
		return queue
	}
	queue.Mark = "label " + nodepool.QueueLabel + " on RayCluster " + metadata.Text("name")
	parent := ownerOf(metadata)
	queue.Remote = parent.Kind == "" && labels[multiKueueOrigin] != "" && !spec.Flag("enableInTreeAutoscaling")
	if parent.Kind != "" {
		queue.Parent = parent
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

// Ownership is what a RayCluster itself says about its owners.
type Ownership struct {
	Controller Controller
	// Elastic and the queue that Kueue wrote into the pod templates; see admittedQueue.
	Elastic  bool
	Queue    string
	Admitted bool
}

// Controller is the ownerReference with controller: true, or the zero value if there is none.
type Controller struct {
	APIVersion, Kind, Name, UID string
}

// ownershipOf reads what a RayCluster says about its owners.
func ownershipOf(metadata, spec Fields) Ownership {
	l := Ownership{Controller: controllerOf(metadata), Elastic: elastic(spec)}
	l.Queue, l.Admitted = admittedQueue(spec)
	return l
}

func controllerOf(metadata Fields) Controller {
	for _, reference := range metadata.Objects("ownerReferences") {
		if reference.Flag("controller") {
			return Controller{reference.Text("apiVersion"), reference.Text("kind"), reference.Text("name"),
				reference.Text("uid")}
		}
	}
	return Controller{}
}
