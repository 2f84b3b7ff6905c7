package nodeobject

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool/kube/units"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

// Strip keeps of a node what ForPodFit reads. A node with its list of images is 10 to 30 KB; less than 5 KB remain.
func Strip(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil // a tombstone
	}
	stripped := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{
			Allocatable: node.Status.Allocatable,
			NodeInfo:    corev1.NodeSystemInfo{BootID: node.Status.NodeInfo.BootID},
		},
	}
	for name, quantity := range node.Status.Capacity {
		if units.Extended(string(name)) || node.Labels[karpenterPool] != "" {
			if stripped.Status.Capacity == nil {
				stripped.Status.Capacity = corev1.ResourceList{}
			}
			stripped.Status.Capacity[name] = quantity
		}
	}
	for _, key := range nodegpu.Annotations() {
		if value, set := node.Annotations[key]; set {
			metav1.SetMetaDataAnnotation(&stripped.ObjectMeta, key, value)
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady || nodegpu.IsGPUCondition(string(c.Type)) {
			stripped.Status.Conditions = append(
				stripped.Status.Conditions,
				corev1.NodeCondition{Type: c.Type, Status: c.Status},
			)
		}
	}
	return stripped, nil
}
