package addon

import (
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Why a cluster has its mode: stable codes of Decision.Why and of Events.
const (
	AsAsked          = "AsAsked"
	NotAsked         = "NotAsked"
	NamespaceUnknown = "NamespaceUnknown"
	ReadOnly         = "ReadOnly"
	Frozen           = "Frozen"
	Suspended        = "Suspended"
	BeingDeleted     = "BeingDeleted"
	ManagedElsewhere = "ManagedElsewhere"
	Unreadable       = "Unreadable"
	SidecarAlive     = "SidecarAlive"
	SidecarManages   = "SidecarManages"
	Parked           = "Parked"
	// QueuedByKueue: a change of replicas would restart the RayCluster or exceed its quota. ElasticQueuedByKueue:
	// every pod template has Kueue's gate, but it is not proven that replicas may change.
	QueuedByKueue        = "QueuedByKueue"
	ElasticQueuedByKueue = "ElasticQueuedByKueue"
	// QueueUnknown: an owner that Kueue may queue has not been read.
	QueueUnknown = "QueueUnknown"
)

// HandedBack reports whether somebody chose that Heliostat no longer scales the RayCluster, and nothing forbids writes.
func HandedBack(cluster *nodepool.Cluster, now nodepool.Mode, why planner.Reason) bool {
	chosen := why.Code == AsAsked || why.Code == NotAsked || why.Code == SidecarAlive
	return chosen && now == nodepool.Shadow && cluster.Writable() == nil
}
