package objects

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// ServiceAddress returns the address of the youngest pod that the Service selects: after a Ray head is replaced, its
// predecessor exists for a while. The pod need not be ready, because KubeRay's head Service publishes addresses that
// are not ready, and Ray's workers retry.
func (r Reader) ServiceAddress(ctx context.Context, namespace, name string) (string, error) {
	service, err := r.Client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("finding Service %s/%s: %w", namespace, name, err)
	}
	if len(service.Spec.Selector) == 0 {
		return "", fmt.Errorf("finding a pod of Service %s/%s: the Service has no selector", namespace, name)
	}
	pods, err := r.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String(),
	})
	if err != nil {
		return "", fmt.Errorf("finding a pod of Service %s/%s: %w", namespace, name, err)
	}
	if pod := youngestServing(pods.Items); pod != nil {
		return pod.Status.PodIP, nil
	}
	return "", fmt.Errorf("finding a pod of Service %s/%s: none of %d pods has an address", namespace, name,
		len(pods.Items))
}

func youngestServing(pods []corev1.Pod) *corev1.Pod {
	var best *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if ended || pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
			continue
		}
		if best == nil || best.CreationTimestamp.Before(&pod.CreationTimestamp) {
			best = pod
		}
	}
	return best
}
