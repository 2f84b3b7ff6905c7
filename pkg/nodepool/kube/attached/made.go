package attached

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// madeLabel is the label of all objects that Heliostat makes for RayClusters, with the value madeBy. The selector Made
// selects them.
const (
	madeLabel, madeBy = "app.kubernetes.io/managed-by", "heliostat"
	Made              = madeLabel + "=" + madeBy
)

const (
	// autoscalingGroup is the API group of ProvisioningRequests and CapacityBuffers.
	autoscalingGroup = "autoscaling.x-k8s.io"
	// groupAnnotation names the worker group that an object is for.
	groupAnnotation = "heliostat.dev/group"
)

// madeFor returns an object for a RayCluster. The RayCluster owns it, so that it goes with the RayCluster.
func madeFor(
	rayCluster *unstructured.Unstructured, name string, annotations map[string]string, content map[string]any,
) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: content}
	object.SetNamespace(rayCluster.GetNamespace())
	object.SetName(name)
	object.SetLabels(map[string]string{madeLabel: madeBy})
	object.SetAnnotations(annotations)
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: rayCluster.GetAPIVersion(),
		Kind: rayCluster.GetKind(), Name: rayCluster.GetName(), UID: rayCluster.GetUID()}})
	return object
}

// wholeTemplate returns a copy of the pod template of a worker group, with the labels of its pods: KubeRay adds some,
// and anti-affinity and spread constraints may select them. What else KubeRay adds, no scheduler looks at, except for a
// small init container. It returns nil if there is no such group with a template.
func wholeTemplate(
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

var templates = corev1.SchemeGroupVersion.WithResource("podtemplates")

// podTemplates is the client of the PodTemplates that objects of the kind name.
func (o *Objects[E, T]) podTemplates(namespace string) dynamic.ResourceInterface {
	return o.config.Client.Resource(templates).Namespace(namespace)
}
