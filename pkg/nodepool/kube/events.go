package kube

import (
	"context"
	"log/slog"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Event emits a Kubernetes Event on the RayCluster; client-go's recorder aggregates repeated ones and limits their
// rate. The single form has no right to create Events, and logs it instead.
func (m *Manager) Event(cluster nodepool.Cluster, warning bool, reason, message string) {
	m.event(cluster, reference(cluster), warning, reason, message)
}

// OwnerEvent emits it on the RayJob or RayService that owns the RayCluster.
func (m *Manager) OwnerEvent(cluster nodepool.Cluster, warning bool, reason, message string) {
	owner := reference(cluster)
	owner.Kind, owner.Name, owner.UID = cluster.Owner.Kind, cluster.Owner.Name, types.UID(cluster.Owner.UID)
	owner.ResourceVersion = ""
	m.event(cluster, owner, warning, reason, message)
}

func (m *Manager) event(
	cluster nodepool.Cluster, about *corev1.ObjectReference, warning bool, reason, message string,
) {
	if m.recorder == nil {
		level := slog.LevelInfo
		if warning {
			level = slog.LevelWarn
		}
		m.options.Logger.Log(context.Background(), level, message, "cluster", cluster.Key.String(), "reason", reason)
		return
	}
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	m.recorder.Event(about, kind, reason, message)
}

func reference(cluster nodepool.Cluster) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: rayv1.SchemeGroupVersion.String(), Kind: "RayCluster",
		Namespace: cluster.Key.Namespace, Name: cluster.Key.Name,
		UID: types.UID(cluster.UID), ResourceVersion: cluster.ResourceVersion,
	}
}
