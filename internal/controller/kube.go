package controller

import (
	"context"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Kube is everything that the controller needs from Kubernetes.
type Kube interface {
	// Cluster reads a RayCluster and its pods from the caches; nodepool.ErrGone if it does not exist.
	Cluster(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error)
	// Fresh reads the same from the API server. The controller calls it before it takes anything away.
	Fresh(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error)
	// NamespaceMode returns the mode that a namespace sets for its RayClusters, empty for none, and why it is unknown,
	// empty if it is known.
	NamespaceMode(namespace string) (mode nodepool.Mode, unknown string)
	// MayWrite reports whether this process may write to a RayCluster now. The controller calls it right before every
	// drain, because no API server guards drains.
	MayWrite(key nodepool.ClusterKey) bool
	// Apply writes one guarded patch and returns the cluster's new generation. After nodepool.ErrConflict and
	// nodepool.ErrReadOnly, observe again; after nodepool.ErrNotLeading, another process decides.
	Apply(ctx context.Context, change nodepool.Change) (generation int64, err error)
	// SyncNumGPUs writes numbers of GPUs into the spec, guarded in the same way. A *nodepool.SyncRefusal says that
	// they must not be written; other errors are those of Apply.
	SyncNumGPUs(ctx context.Context, change nodepool.NumGPUsChange) (generation int64, err error)
	// Event records a Kubernetes Event on the RayCluster. warning selects its type.
	Event(cluster nodepool.Cluster, warning bool, reason, message string)
}

// OwnedRequests lists ResourceRequests and writes their status.
type OwnedRequests interface {
	// Of lists the requests for a RayCluster, whether it exists or not.
	Of(key nodepool.ClusterKey) []nodepool.OwnedRequest
	// Report queues the updates and does not block. An update that cannot be written is dropped; the next cycle finds
	// it missing and queues it again.
	Report(updates []nodepool.OwnedUpdate)
}
