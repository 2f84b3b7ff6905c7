package attached

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MadeLabel is the label of all objects that Heliostat makes for RayClusters, with the value MadeBy. The selector Made
// selects them.
const (
	MadeLabel, MadeBy = "app.kubernetes.io/managed-by", "heliostat"
	Made              = MadeLabel + "=" + MadeBy
)

const (
	// autoscalingGroup is the API group of ProvisioningRequests and CapacityBuffers.
	autoscalingGroup = "autoscaling.x-k8s.io"
	// groupAnnotation names the worker group that an object is for.
	groupAnnotation = "heliostat.dev/group"
)

// MadeFor returns an object for a RayCluster. The RayCluster owns it, so that it goes with the RayCluster.
func MadeFor(
	rayCluster *unstructured.Unstructured, name string, annotations map[string]string, content map[string]any,
) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: content}
	object.SetNamespace(rayCluster.GetNamespace())
	object.SetName(name)
	object.SetLabels(map[string]string{MadeLabel: MadeBy})
	object.SetAnnotations(annotations)
	object.SetOwnerReferences([]metav1.OwnerReference{Owner(rayCluster)})
	return object
}

// Owner returns the reference of a RayCluster as an owner.
func Owner(rayCluster *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: rayCluster.GetAPIVersion(), Kind: rayCluster.GetKind(),
		Name: rayCluster.GetName(), UID: rayCluster.GetUID()}
}

// PodTemplate returns a copy of the pod template of a worker group, with the labels of its pods: KubeRay adds some, and
// anti-affinity and spread constraints may select them. What else KubeRay adds, no scheduler looks at, except for a
// small init container. It returns nil if there is no such group with a template.
func PodTemplate(
	rayCluster *unstructured.Unstructured, group string, labels map[string]string,
) (map[string]any, error) {
	groups, _, err := unstructured.NestedSlice(rayCluster.Object, "spec", "workerGroupSpecs")
	if err != nil {
		return nil, fmt.Errorf("reading the worker groups of RayCluster %s/%s: %w", rayCluster.GetNamespace(),
			rayCluster.GetName(), err)
	}
	for _, each := range groups {
		fields, _ := each.(map[string]any)
		template, _ := fields["template"].(map[string]any)
		if template == nil || fields["groupName"] != group {
			continue
		}
		for name, value := range labels {
			if err := unstructured.SetNestedField(template, value, "metadata", "labels", name); err != nil {
				return nil, fmt.Errorf("the labels of worker group %s: %w", group, err)
			}
		}
		return template, nil
	}
	return nil, nil
}
