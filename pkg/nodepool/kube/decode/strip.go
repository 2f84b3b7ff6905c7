package decode

import (
	"slices"
	"strings"

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

// stripPod keeps of a head pod what describeHead and describeAuth read: about 2 KB of 10 KB.
func stripPod(pod *corev1.Pod) *corev1.Pod {
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Annotations: guardAnnotations(pod),
		},
		Spec: corev1.PodSpec{
			RestartPolicy: pod.Spec.RestartPolicy, NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority,
		},
		Status: corev1.PodStatus{PodIP: pod.Status.PodIP},
	}
	if ready := condition(pod, corev1.PodReady); ready != nil {
		stripped.Status.Conditions = []corev1.PodCondition{{Type: ready.Type, Status: ready.Status}}
	}
	for _, s := range pod.Status.ContainerStatuses {
		kept := corev1.ContainerStatus{Name: s.Name, RestartCount: s.RestartCount}
		if s.State.Terminated != nil {
			kept.State.Terminated = &corev1.ContainerStateTerminated{}
		}
		stripped.Status.ContainerStatuses = append(stripped.Status.ContainerStatuses, kept)
	}
	stripContainers(stripped, pod)
	return stripped
}

// stripContainers keeps of the head's containers what describes its port, its sidecar and its authentication.
func stripContainers(stripped, pod *corev1.Pod) {
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
