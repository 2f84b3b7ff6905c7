package rayobject

import (
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// StripRayCluster drops what Heliostat does not read before an object enters the cache.
func StripRayCluster(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		keepScaler(u)
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}

// StripPod keeps of a pod what headOf, worker and describeAuth read. A worker pod shrinks from about 10 KB to less than
// 1 KB.
func StripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // a tombstone
	}
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Labels: map[string]string{},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: pod.Spec.RestartPolicy, NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority,
			TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, PodIP: pod.Status.PodIP,
		},
	}
	stripped.Annotations = guardAnnotations(pod)
	if pod.Status.Phase == corev1.PodFailed {
		stripped.Status.Reason, stripped.Status.Message = pod.Status.Reason, pod.Status.Message
	}
	for _, label := range []string{ClusterLabel, nodeTypeLabel, groupLabel, replicaLabel} {
		if value, set := pod.Labels[label]; set {
			stripped.Labels[label] = value
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled || c.Type == corev1.DisruptionTarget {
			stripped.Status.Conditions = append(stripped.Status.Conditions, corev1.PodCondition{
				Type:               c.Type,
				Status:             c.Status,
				Reason:             c.Reason,
				Message:            c.Message,
				LastTransitionTime: c.LastTransitionTime,
			})
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		stripped.Status.ContainerStatuses = append(stripped.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: s.Name, RestartCount: s.RestartCount, State: stripState(s.State),
		})
	}
	if pod.Labels[nodeTypeLabel] == headNode {
		stripHead(stripped, pod)
	} else if len(pod.Spec.Containers) > 0 {
		stripped.Spec.Containers = named(pod.Spec.Containers[0].Name)
	}
	return stripped, nil
}

// lastNamed is what named last returned.
var lastNamed atomic.Pointer[[]corev1.Container]

// named returns a container of that name, without anything else. Nearly all worker pods share one: a container takes
// 0.8 KiB even when it is empty, and nothing changes objects in the cache.
func named(container string) []corev1.Container {
	if last := lastNamed.Load(); last != nil && (*last)[0].Name == container {
		return *last
	}
	one := []corev1.Container{{Name: container}}
	lastNamed.Store(&one)
	return one
}

func stripState(state corev1.ContainerState) corev1.ContainerState {
	switch {
	case state.Running != nil:
		return corev1.ContainerState{Running: state.Running}
	case state.Waiting != nil:
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: state.Waiting.Reason}}
	case state.Terminated != nil:
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	}
	return corev1.ContainerState{}
}

// stripHead keeps of the head what describes its port, its sidecar and its authentication.
func stripHead(stripped, pod *corev1.Pod) {
	for i, c := range pod.Spec.Containers {
		kept := corev1.Container{Name: c.Name, Image: c.Image}
		if i == 0 {
			kept.Ports, kept.VolumeMounts, kept.EnvFrom = c.Ports, c.VolumeMounts, c.EnvFrom
		}
		if c.Name == autoscalerContainer {
			kept.Command, kept.Args = c.Command, c.Args
		}
		for _, v := range c.Env {
			if strings.HasPrefix(v.Name, "RAY_AUTH_") || strings.HasPrefix(v.Name, "RAY_TLS_") ||
				slices.Contains([]string{"RAY_USE_TLS", "RAY_ENABLE_K8S_TOKEN_AUTH", SidecarEnv}, v.Name) {
				kept.Env = append(kept.Env, v)
			}
		}
		stripped.Spec.Containers = append(stripped.Spec.Containers, kept)
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			stripped.Spec.Volumes = append(stripped.Spec.Volumes, corev1.Volume{
				Name:         v.Name,
				VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: v.Secret.SecretName}},
			})
		}
	}
}
