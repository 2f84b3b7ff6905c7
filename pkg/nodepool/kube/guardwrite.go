package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// Guard writes the annotations of one pod in one merge patch. The patch names the uid and the resourceVersion that the
// change was decided from, so that it never reaches another pod, or overwrites an annotation that somebody has written
// since. nodepool.ErrConflict: the pod has changed. nodepool.ErrGone: there is no such pod. nodepool.ErrReadOnly: the
// RayCluster must not be changed. nodepool.ErrNotLeading: this process may not write. nodepool.ErrDenied: it has no
// right to patch pods.
func (m *Manager) Guard(ctx context.Context, change nodepool.GuardChange) error {
	doing := fmt.Sprintf("guarding pod %s/%s", change.Cluster.Namespace, change.Pod)
	return m.annotatePod(ctx, change.Cluster, doing, podVersion{change.Pod, change.UID, change.Read.Version},
		decode.GuardWritten(change))
}

// podVersion is one version of one pod.
type podVersion struct{ name, uid, version string }

// annotatePod writes annotations of one version of a pod of the RayCluster; nil removes one.
func (m *Manager) annotatePod(
	ctx context.Context, key nodepool.ClusterKey, doing string, pod podVersion, annotations map[string]any,
) error {
	if _, err := m.mayWriteBeside(key, false); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.uid, "resourceVersion": pod.version, "annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	ctx, cancel := m.whileHeld(ctx, key)
	defer cancel()
	_, err = m.core.Pods(key.Namespace).Patch(ctx, pod.name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: nodepool.FieldManager})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, classified(err))
	}
	return nil
}

// mayWriteBeside returns the RayCluster if objects that belong to it may be written now. Kueue's queue is no reason
// against it: Kueue admits pods, whatever their annotations say. evenSuspended: nor is that it is suspended.
func (m *Manager) mayWriteBeside(key nodepool.ClusterKey, evenSuspended bool) (*unstructured.Unstructured, error) {
	object, err := m.newest(key)
	if err != nil {
		return nil, err
	}
	cluster := m.decodes.decode(object).Cluster
	cluster.Queue, cluster.Suspended = nodepool.Queue{}, cluster.Suspended && !evenSuspended
	return object, cmp.Or(cluster.Writable(), m.mayWriteNow(key))
}

// mayWriteNow returns why this process must not write anything about a RayCluster now, or nil.
func (m *Manager) mayWriteNow(key nodepool.ClusterKey) error {
	if err := m.options.writable(); err != nil {
		return err
	}
	if !m.MayWrite(key) {
		return nodepool.ErrNotLeading
	}
	return nil
}

// Provision writes or deletes one ProvisioningRequest, or annotates a pod that uses one. Its errors are those of Guard.
func (m *Manager) Provision(ctx context.Context, change nodepool.ProvisioningChange) error {
	doing := fmt.Sprintf("pod %s/%s and its ProvisioningRequest", change.Cluster.Namespace, change.Pod.Pod)
	switch change.Kind {
	case nodepool.ConsumeCapacity, nodepool.ForgetCapacity:
		pod := podVersion{change.Pod.Pod, change.Pod.UID, change.Pod.Guard.Version}
		return m.annotatePod(ctx, change.Cluster, doing, pod, attached.PodAnnotations(change))
	}
	object, err := m.mayWriteBeside(change.Cluster, false)
	if err != nil {
		return fmt.Errorf("%s ProvisioningRequest %s: %w", change.Kind, change.Request.Name, err)
	}
	if string(object.GetUID()) != change.UID {
		return fmt.Errorf("RayCluster %s was created again: %w", change.Cluster, nodepool.ErrConflict)
	}
	ctx, cancel := m.whileHeld(ctx, change.Cluster)
	defer cancel()
	if change.Kind == nodepool.ReleaseCapacity {
		err = m.provisioning.Release(ctx, change.Cluster.Namespace, change.Request)
	} else {
		err = m.provisioning.Ask(ctx, object, m.podLabels(object, change.Request.Group), change.Request)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", nodepool.ErrDenied, err)
	}
	return err
}

// podLabels returns the labels of a group's pods.
func (m *Manager) podLabels(rayCluster *unstructured.Unstructured, group string) map[string]string {
	cluster := m.decodes.decode(rayCluster).Cluster
	if g, known := cluster.Group(group); known {
		return g.Pod.Neighbors.Labels
	}
	return nil
}
