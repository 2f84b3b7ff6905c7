package nodeagent

import (
	"context"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// serviceName finds <service>.<namespace>.svc, with or without the cluster's domain. There is no cluster DNS and no
// service proxy on this machine, so names of Services are replaced by a pod's address before a container starts.
var serviceName = regexp.MustCompile(
	`\b([a-z](?:[-a-z0-9]*[a-z0-9])?)\.([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)\.svc(?:\.cluster\.local)?\b`)

// lookup finds the address behind a Service.
type lookup func(ctx context.Context, namespace, service string) (string, error)

// replaceServices replaces the full names of Services in text by addresses.
func replaceServices(ctx context.Context, text string, find lookup) (string, error) {
	var failed error
	replaced := serviceName.ReplaceAllStringFunc(text, func(name string) string {
		parts := serviceName.FindStringSubmatch(name)
		ip, err := find(ctx, parts[2], parts[1])
		if err != nil {
			failed = err
		}
		return ip
	})
	return replaced, failed
}

// serviceAddress returns the address of a pod that the Service selects: the youngest one, since a Ray head that was
// replaced leaves its predecessor behind for a while. Readiness is not asked for, because KubeRay's head Service
// publishes addresses that are not ready, and Ray's workers retry.
func (a *Agent) serviceAddress(ctx context.Context, namespace, name string) (string, error) {
	service, err := a.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("finding Service %s/%s: %w", namespace, name, err)
	}
	if len(service.Spec.Selector) == 0 {
		return "", fmt.Errorf("finding a pod of Service %s/%s: the Service selects nothing", namespace, name)
	}
	pods, err := a.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String(),
	})
	if err != nil {
		return "", fmt.Errorf("finding a pod of Service %s/%s: %w", namespace, name, err)
	}
	if pod := youngestServing(pods.Items); pod != nil {
		return pod.Status.PodIP, nil
	}
	return "", fmt.Errorf("finding a pod of Service %s/%s: none of %d has an address", namespace, name, len(pods.Items))
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
