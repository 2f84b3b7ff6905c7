package decode

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Strip keeps of a node what ForPodFit and Departure read. A node with its list of images is 10 to 30 KB; less than 5
// KB remain.
func Strip(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil // a tombstone
	}
	stripped := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			CreationTimestamp: node.CreationTimestamp, DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{
			Allocatable: node.Status.Allocatable,
			NodeInfo:    corev1.NodeSystemInfo{BootID: node.Status.NodeInfo.BootID},
		},
	}
	for name, quantity := range node.Status.Capacity {
		if extended(string(name)) || node.Labels[karpenterPool] != "" {
			if stripped.Status.Capacity == nil {
				stripped.Status.Capacity = corev1.ResourceList{}
			}
			stripped.Status.Capacity[name] = quantity
		}
	}
	if node.Annotations != nil {
		stripped.Annotations = map[string]string{} // that some are shown says that the others are not there
	}
	for key, value := range node.Annotations {
		if sharing.ReadsAnnotation(key) {
			metav1.SetMetaDataAnnotation(&stripped.ObjectMeta, key, value)
		}
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		kept := corev1.NodeCondition{Type: c.Type, Status: c.Status}
		switch {
		case departure.OfCondition(string(c.Type), c.Status == corev1.ConditionTrue, c.Reason, c.Message) != nil:
			kept.Reason, kept.Message, kept.LastTransitionTime = c.Reason, c.Message, c.LastTransitionTime
		case c.Type != corev1.NodeReady && !sharing.IsGPUCondition(string(c.Type)):
			continue
		}
		stripped.Status.Conditions = append(stripped.Status.Conditions, kept)
	}
	return stripped, nil
}

// StripPod keeps of a pod what Bound reads. A pod with its environment, volumes and managed fields is 10 to 30 KB;
// about 1 KB remains.
func StripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // a tombstone
	}
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp, Annotations: cardAnnotations(pod), Labels: pod.Labels,
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
			Containers:     resourcesOnly(pod.Spec.Containers),
			InitContainers: resourcesOnly(pod.Spec.InitContainers),
			Affinity:       antiAffinityOnly(pod),
		},
		Status: corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			ContainerStatuses:     allocatedOnly(pod.Status.ContainerStatuses),
			InitContainerStatuses: allocatedOnly(pod.Status.InitContainerStatuses),
		},
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			stripped.Status.Conditions = append(stripped.Status.Conditions, c)
		}
	}
	return stripped, nil
}

// resourcesOnly keeps what containers request, with the ports of the node.
func resourcesOnly(containers []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		kept[i] = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy,
			Ports: hostPortsOnly(c.Ports)}
	}
	return kept
}

// allocatedOnly keeps what the kubelet allocates to containers, which differs from their requests during a resize.
func allocatedOnly(statuses []corev1.ContainerStatus) (kept []corev1.ContainerStatus) {
	for i := range statuses {
		if s := &statuses[i]; s.Resources != nil {
			kept = append(kept, corev1.ContainerStatus{Name: s.Name, Resources: s.Resources,
				AllocatedResources: s.AllocatedResources})
		}
	}
	return kept
}
