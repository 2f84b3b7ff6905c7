package nodepool

import "time"

// Target is the desired state of one worker group: its replicas and, when replicas leave, the pods to delete by name.
type Target struct {
	Group string
	// Index and From repeat what was read; the patch tests both.
	Index, From int
	// Replicas is the new value, within [minReplicas, maxReplicas]; lower if the minimum is immense, because then the
	// operator keeps the minimum whatever is written.
	Replicas int
	// WorkersToDelete replaces the stored list; nil leaves it unchanged.
	WorkersToDelete []string
	// TakenBack is how many replicas stay although they were named, because Ray runs or starts in them again.
	TakenBack int
}

// Change is one guarded write to one RayCluster: all its targets or none.
type Change struct {
	Cluster ClusterKey
	// UID guards against a cluster that was deleted and created again under the same name.
	UID string
	// Generation is that of the spec for which the targets were computed. A change that names pods is refused on any
	// other.
	Generation int64
	Targets    []Target
	// ValidUntil is when the reading of Ray on which the targets rest is too old for them; zero means never.
	ValidUntil time.Time
	// OwnersReadSince allows what is known of the RayCluster's owners, if they were read since; zero reads them again.
	OwnersReadSince time.Time
	// Term is that of the writer, which is stored with the change; empty without shards.
	Term string
}

// ProvisioningChange is one write to a ProvisioningRequest, or to a pod that uses one.
type ProvisioningChange struct {
	Kind    string
	Cluster ClusterKey
	// UID is that of the RayCluster.
	UID     string
	Request ProvisioningRequest
	// Pod is the pod that ConsumeCapacity and ForgetCapacity write to, as of one version.
	Pod Worker
}
