package nodepool

import "errors"

// ErrConflict says that the RayCluster was not as it had been read: look again.
var ErrConflict = errors.New("RayCluster changed since it was read")

// ErrReadOnly says that the RayCluster must not be written to now: it is frozen, suspended, being deleted or managed by
// another controller, or this process only reads. The error that wraps it tells which.
var ErrReadOnly = errors.New("RayCluster must not be written to")

// ErrNotLeading says that another process has, or may have, the right to write.
var ErrNotLeading = errors.New("this process does not lead")

// Target is what one worker group shall be: its replicas and, when replicas leave, the pods that go by name.
type Target struct {
	Group string
	// Index and From repeat what was read; the patch tests both.
	Index, From int
	// Replicas is the new value, within [minReplicas, maxReplicas]; below an immense minimum, at which the operator keeps
	// the group whatever is written.
	Replicas int
	// WorkersToDelete replaces the stored list; nil leaves it alone.
	WorkersToDelete []string
	// HasScaleStrategy as read: an absent scaleStrategy is added, a present one replaced.
	HasScaleStrategy bool
}

// Change is one guarded write to one RayCluster: all its targets or none.
type Change struct {
	Cluster ClusterKey
	// UID guards against a cluster that was deleted and created anew under the same name.
	UID string
	// Generation is that of the spec which the targets were computed from. A change that names pods is refused on any other.
	Generation int64
	Targets    []Target
	// ScaleUpTrace is kept with the change; empty keeps nothing.
	ScaleUpTrace string
}
