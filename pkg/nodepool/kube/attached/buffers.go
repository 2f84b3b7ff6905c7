package attached

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/nodepool"
)

const (
	bufferResource = "capacitybuffers"
	// templateAnnotation is what the PodTemplate of a buffer says.
	templateAnnotation = "heliostat.dev/pod-template"
	// provisioned are the conditions of a buffer's status: its PodTemplate is found, and its nodes are launched.
	resolved, provisioned = "ReadyForProvisioning", "Provisioning"
)

// bufferVersions are those that can be written, the best first: Karpenter and newer releases of GKE serve v1beta1.
var bufferVersions = []string{"v1beta1", "v1alpha1"}

// buffer returns the CapacityBuffer for pods of a group of the RayCluster.
func buffer(rayCluster *unstructured.Unstructured, version string, b nodepool.Buffer) *unstructured.Unstructured {
	return owned(rayCluster, b, map[string]any{
		"apiVersion": autoscalingGroup + "/" + version, "kind": "CapacityBuffer",
		"spec": map[string]any{
			"podTemplateRef": map[string]any{"name": b.Name},
			"replicas":       b.Pods,
		},
	})
}

// owned adds the metadata.
func owned(
	rayCluster *unstructured.Unstructured, b nodepool.Buffer, content map[string]any,
) *unstructured.Unstructured {
	annotations := map[string]string{groupAnnotation: b.Group, templateAnnotation: b.Template}
	return madeFor(rayCluster, b.Name, annotations, content)
}

// ours reports whether Heliostat made an object for a RayCluster.
func ours(object *unstructured.Unstructured, rayClusterUID string) bool {
	if object.GetLabels()[madeLabel] != madeBy || object.GetAnnotations()[groupAnnotation] == "" {
		return false
	}
	for _, reference := range object.GetOwnerReferences() {
		if reference.Kind == "RayCluster" && string(reference.UID) == rayClusterUID {
			return true
		}
	}
	return false
}

// readBuffer reads a buffer with the RayCluster that owns it; false for one that is not Heliostat's.
func readBuffer(object *unstructured.Unstructured) (buffer Object[nodepool.Buffer], ok bool) {
	var fields struct {
		Spec struct {
			Replicas int64 `json:"replicas"`
		} `json:"spec"`
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	for _, reference := range object.GetOwnerReferences() {
		if reference.Kind != "RayCluster" || !ours(object, string(reference.UID)) {
			continue
		}
		// A status that cannot be read says nothing; the rest was written by this package.
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &fields)
		b := nodepool.Buffer{
			Name: object.GetName(), UID: string(object.GetUID()), Group: object.GetAnnotations()[groupAnnotation],
			Pods: fields.Spec.Replicas, Template: object.GetAnnotations()[templateAnnotation],
			Deleting: object.GetDeletionTimestamp() != nil,
		}
		if err == nil {
			judgeBuffer(&b, fields.Status.Conditions)
		}
		cluster := nodepool.ClusterKey{Namespace: object.GetNamespace(), Name: reference.Name}
		return Object[nodepool.Buffer]{Cluster: cluster, UID: string(reference.UID), Value: b}, true
	}
	return buffer, false
}

// judgeBuffer sets what the node autoscaler says. A buffer is provided if its condition Provisioning is true, or, where
// there is no such condition, if the buffer is resolved.
func judgeBuffer(b *nodepool.Buffer, conditions []metav1.Condition) {
	for _, c := range conditions {
		said := c.Reason
		if c.Message != "" && c.Message != c.Reason {
			said += ": " + c.Message
		}
		switch c.Type {
		case resolved:
			b.Broken = c.Status == metav1.ConditionFalse
			if b.Answer == "" {
				b.Answer, b.Provided = said, c.Status == metav1.ConditionTrue
			}
		case provisioned:
			b.Answer, b.Provided = said, c.Status == metav1.ConditionTrue
		}
	}
	b.Provided = b.Provided && !b.Broken
}

// identity identifies the content of a PodTemplate. Keys of objects are sorted in its JSON.
func identity(template map[string]any) (string, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("a pod template: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}
