package nodeagent

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

// statusOnly is a client whose status updates of pods write only the status. The pod controller updates the whole
// object, with labels, annotations and finalizers from its cache, and would undo newer changes by others.
type statusOnly struct{ kubernetes.Interface }

// CoreV1 implements kubernetes.Interface.
func (c statusOnly) CoreV1() typedcore.CoreV1Interface { return statusOnlyCore{c.Interface.CoreV1()} }

type statusOnlyCore struct{ typedcore.CoreV1Interface }

// Pods implements typedcore.PodsGetter.
func (c statusOnlyCore) Pods(namespace string) typedcore.PodInterface {
	return statusOnlyPods{c.CoreV1Interface.Pods(namespace)}
}

type statusOnlyPods struct{ typedcore.PodInterface }

// UpdateStatus replaces the status of the pod with this UID. It does not change a later pod with the same name.
func (p statusOnlyPods) UpdateStatus(
	ctx context.Context, pod *corev1.Pod, _ metav1.UpdateOptions,
) (*corev1.Pod, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": pod.UID},
		{"op": "replace", "path": "/status", "value": pod.Status},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return p.Patch(ctx, pod.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
}
