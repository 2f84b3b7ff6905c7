// Package made has what objects share that Heliostat makes for RayClusters, such as CapacityBuffers: the metadata by
// which it knows them, and the pod template of a worker group. It must not read or write objects.
package made

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Label is the label that all such objects have, with the value By. Selector selects them.
const (
	Label, By = "app.kubernetes.io/managed-by", "heliostat"
	Selector  = Label + "=" + By
)

// For returns an object for a RayCluster. The RayCluster owns it, so that it goes with the RayCluster.
func For(
	rayCluster *unstructured.Unstructured, name string, annotations map[string]string, content map[string]any,
) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: content}
	object.SetNamespace(rayCluster.GetNamespace())
	object.SetName(name)
	object.SetLabels(map[string]string{Label: By})
	object.SetAnnotations(annotations)
	object.SetOwnerReferences([]metav1.OwnerReference{Owner(rayCluster)})
	return object
}

// Owner returns the reference of a RayCluster as an owner.
func Owner(rayCluster *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: rayCluster.GetAPIVersion(), Kind: rayCluster.GetKind(),
		Name: rayCluster.GetName(), UID: rayCluster.GetUID()}
}
