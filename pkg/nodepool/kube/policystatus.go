package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
)

// ReportPolicy writes the status of one CapacityPolicy. A policy that is gone or was made again is no error: the watch
// will show it.
func (m *Manager) ReportPolicy(ctx context.Context, cluster nodepool.ClusterKey, status capacity.Status) error {
	if err := m.mayReport(cluster, status); err != nil {
		return fmt.Errorf("writing the status of CapacityPolicy %s: %w", status.Name, err)
	}
	patch, err := attached.StatusPatch(status)
	if err != nil {
		return fmt.Errorf("writing the status of CapacityPolicy %s: %w", status.Name, err)
	}
	ctx, cancel := m.whileHeld(ctx)
	defer cancel()
	_, err = m.dynamic.Resource(v1alpha1.CapacityPolicyResource).Namespace(cluster.Namespace).
		Patch(ctx, status.Name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: nodepool.FieldManager}, "status")
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("writing the status of CapacityPolicy %s/%s: %w", cluster.Namespace, status.Name, err)
}

// mayReport returns why the status of a policy must not be written now, or nil. That of a policy without a RayCluster
// is written by the process that would decide about it.
func (m *Manager) mayReport(cluster nodepool.ClusterKey, status capacity.Status) error {
	switch _, err := m.mayWriteBeside(cluster, false); {
	case isGone(err):
		return m.mayWriteNow(cluster)
	case err == nil && status.State == capacity.NoRayCluster:
		return fmt.Errorf("there is a RayCluster %s: %w", cluster, nodepool.ErrConflict)
	default:
		return err
	}
}

// PoliciesWithoutCluster returns the statuses that are to be written to the CapacityPolicies of a RayCluster that does
// not exist.
func (m *Manager) PoliciesWithoutCluster(cluster nodepool.ClusterKey) []capacity.Status {
	return m.policies.WithoutCluster(cluster)
}
