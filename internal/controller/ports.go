package controller

import (
	"context"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Kube is all the controller needs from Kubernetes.
type Kube interface {
	// Cluster reads a RayCluster and its pods from the caches; nodepool.ErrGone when there is none.
	Cluster(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error)
	// Fresh reads the same from the API server itself. It is asked before anything is taken away.
	Fresh(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error)
	// NamespaceMode returns the mode that a namespace sets for its RayClusters, empty for none, and why it is not
	// known, empty where it is.
	NamespaceMode(namespace string) (mode nodepool.Mode, unknown string)
	// Leading reports whether this process may write now. It is asked right before every drain, which no API server guards.
	Leading() bool
	// Apply writes one guarded patch and returns the cluster's new generation. nodepool.ErrConflict and
	// nodepool.ErrReadOnly mean: look again; nodepool.ErrNotLeading: another process decides now.
	Apply(ctx context.Context, change nodepool.Change) (generation int64, err error)
	// SyncNumGPUs writes numbers of GPUs into the spec, guarded in the same way. A *nodepool.SyncRefusal says that they must not be
	// written, the other errors are Apply's.
	SyncNumGPUs(ctx context.Context, change nodepool.NumGPUsChange) (generation int64, err error)
	// Event records a Kubernetes Event on the RayCluster. warning selects its type.
	Event(cluster nodepool.Cluster, warning bool, reason, message string)
}
