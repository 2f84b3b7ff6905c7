package decode

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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

// OwnershipOf reads it from an object.
func OwnershipOf(rayCluster *unstructured.Unstructured) Ownership {
	root := FieldsOf(rayCluster.Object, &Report{})
	return ownershipOf(root.Object("metadata"), root.Object("spec"))
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
