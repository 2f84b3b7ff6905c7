package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// StandInHead makes the pod of a RayCluster's head as the operator and a kubelet would have made it, running at that address, where there are neither.
func (r *Rig) StandInHead(ctx context.Context, cluster *unstructured.Unstructured, ip string) error {
	now, controls := metav1.Now(), true
	pods := r.Kube.CoreV1().Pods(cluster.GetNamespace())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   cluster.GetName() + "-head",
			Labels: map[string]string{"ray.io/cluster": cluster.GetName(), "ray.io/node-type": "head", "ray.io/group": "headgroup", "ray.io/is-ray-node": "yes"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: cluster.GetAPIVersion(), Kind: cluster.GetKind(),
				Name: cluster.GetName(), UID: cluster.GetUID(), Controller: &controls}},
		},
		Spec: corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "ray-head", Image: Image}}},
	}
	made, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	for ctx.Err() == nil && apierrors.IsForbidden(err) { // the namespace is new, and its ServiceAccount is still to come
		pause(ctx, 100*time.Millisecond)
		made, err = pods.Create(ctx, pod, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("making the head of %s: %w", cluster.GetName(), errors.Join(err, context.Cause(ctx)))
	}
	made.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "ray-head", Ready: true, Image: Image, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	if _, err := pods.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("starting the head of %s: %w", cluster.GetName(), err)
	}
	return nil
}
