package rig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/devcluster"
)

// WorkerPods returns the worker pods of a RayCluster that are not gone.
func (r *Rig) WorkerPods(ctx context.Context, namespace, name string) ([]corev1.Pod, error) {
	pods, err := r.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: workersOf(name)})
	if err != nil {
		return nil, fmt.Errorf("listing the workers of %s/%s: %w", namespace, name, err)
	}
	return pods.Items, nil
}

// NodeOf returns the node of a pod.
func (r *Rig) NodeOf(ctx context.Context, namespace, pod string) (*corev1.Node, error) {
	object, err := r.Kube.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("finding the node of pod %s/%s: %w", namespace, pod, err)
	}
	node, err := r.Kube.CoreV1().Nodes().Get(ctx, object.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("finding the node of pod %s/%s: %w", namespace, pod, err)
	}
	return node, nil
}

// NodeClaims returns the NodeClaims of a NodePool.
func (r *Rig) NodeClaims(ctx context.Context, pool string) ([]unstructured.Unstructured, error) {
	list, err := r.Dynamic.Resource(devcluster.NodeClaims).List(ctx,
		metav1.ListOptions{LabelSelector: "karpenter.sh/nodepool=" + pool})
	if err != nil {
		return nil, fmt.Errorf("listing the NodeClaims of pool %s: %w", pool, err)
	}
	return list.Items, nil
}

// DeleteNodeClaim deletes the NodeClaim of a pod's node, as providers do when a machine is reclaimed. It returns the
// name of the node.
func (r *Rig) DeleteNodeClaim(ctx context.Context, namespace, pod string) (node string, err error) {
	object, err := r.NodeOf(ctx, namespace, pod)
	if err != nil {
		return "", err
	}
	for _, owner := range object.OwnerReferences {
		if owner.Kind == "NodeClaim" {
			err := r.Dynamic.Resource(devcluster.NodeClaims).Delete(ctx, owner.Name, metav1.DeleteOptions{})
			return object.Name, err
		}
	}
	return "", fmt.Errorf("deleting the NodeClaim of node %s: it has none", object.Name)
}

// Unserved returns why a driver's work was not done exactly once: what Ray lost, and what ran twice.
func (d *Driver) Unserved() (problems []string) {
	for _, e := range d.Lost() {
		problems = append(problems, fmt.Sprintf("%s is lost: %s", e.ID, e.Error))
	}
	return append(problems, d.Doubled()...)
}

// Doubled returns which work ran more than once, and where.
func (d *Driver) Doubled() (problems []string) {
	runs := map[string][]string{}
	for _, e := range d.Events() {
		if e.Event == "running" {
			runs[e.ID] = append(runs[e.ID], e.Pod)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(runs)) {
		if pods := runs[id]; len(pods) > 1 {
			problems = append(problems, fmt.Sprintf("%s ran %d times: on %s", id, len(pods), strings.Join(pods, ", ")))
		}
	}
	return problems
}
