package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// StandInHead creates the pod of a head at address ip, as the operator and a kubelet would. Use it in dev clusters that
// have neither.
func StandInHead(ctx context.Context, kube kubernetes.Interface, cluster *unstructured.Unstructured, ip string) error {
	return standIn(ctx, kube, cluster, "head", "headgroup", cluster.GetName()+"-head", ip)
}

// StandInWorker creates the pod of a worker in the same way.
func StandInWorker(
	ctx context.Context, kube kubernetes.Interface, cluster *unstructured.Unstructured, group, name, ip string,
) error {
	return standIn(ctx, kube, cluster, "worker", group, name, ip)
}

func standIn(
	ctx context.Context, kube kubernetes.Interface, cluster *unstructured.Unstructured, kind, group, name, ip string,
) error {
	now, controls, container := metav1.Now(), true, "ray-"+kind
	pods := kube.CoreV1().Pods(cluster.GetNamespace())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"ray.io/cluster":     cluster.GetName(),
				"ray.io/node-type":   kind,
				"ray.io/group":       group,
				"ray.io/is-ray-node": "yes",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: cluster.GetAPIVersion(), Kind: cluster.GetKind(),
				Name: cluster.GetName(), UID: cluster.GetUID(), Controller: &controls}},
		},
		Spec: corev1.PodSpec{
			NodeName:      StandInNode,
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: container, Image: Image}},
		},
	}
	if err := CreateStandInNode(ctx, kube); err != nil {
		return fmt.Errorf("creating the node of pod %s: %w", name, err)
	}
	made, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	for ctx.Err() == nil && apierrors.IsForbidden(err) { // a new namespace has no ServiceAccount yet
		pause(ctx, 100*time.Millisecond)
		made, err = pods.Create(ctx, pod, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("creating pod %s: %w", name, errors.Join(err, context.Cause(ctx)))
	}
	made.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{
			{
				Name:  container,
				Ready: true,
				Image: Image,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			},
		},
	}
	if _, err := pods.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("starting pod %s: %w", name, err)
	}
	return nil
}

// StandInNode is the node of all these pods. Heliostat counts a worker as lost if its Node object is missing. The node
// is so large that it limits no worker group.
const StandInNode = "nowhere"

// CreateStandInNode creates the node unless it exists.
func CreateStandInNode(ctx context.Context, kube kubernetes.Interface) error {
	err := CreateNode(ctx, kube, metav1.ObjectMeta{Name: StandInNode}, corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1T"),
		corev1.ResourceMemory: resource.MustParse("1P"),
		corev1.ResourcePods:   resource.MustParse("1T"),
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// CreateNode creates a node that is ready and has this room.
func CreateNode(
	ctx context.Context, kube kubernetes.Interface, meta metav1.ObjectMeta, room corev1.ResourceList,
) error {
	node, err := kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	node.Status = corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now,
	}}}
	_, err = kube.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}
