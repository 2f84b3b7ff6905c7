// Package mode decides whether Heliostat manages a RayCluster, only plans for it, or leaves it alone, and says why. It
// reads one RayCluster and the settings of this process. It must not plan and must not write anything.
package mode

import (
	"cmp"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Why a cluster is not managed: stable codes of Decision.Why and of Events.
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
	// QueuedByKueue: a change of replicas would restart the RayCluster or leave its quota. ElasticQueuedByKueue: every
	// pod template has Kueue's gate, so replicas may change, but Heliostat does not know yet what Kueue grants.
	QueuedByKueue        = "QueuedByKueue"
	ElasticQueuedByKueue = "ElasticQueuedByKueue"
	// QueueUnknown: the owner that Kueue may queue has not been read.
	QueueUnknown = "QueueUnknown"
)

// Rules decide the mode of RayClusters.
type Rules struct {
	// Form is the form of this process; empty is Fleet.
	Form Form
	// Default applies where no annotation sets a mode. See Config.DefaultMode.
	Default nodepool.Mode
	// ReadOnly manages no RayCluster.
	ReadOnly bool
}

// Effective returns what may be done with the cluster now, and why. It only ever takes away from what was asked.
func (r Rules) Effective(cluster nodepool.Cluster) (nodepool.Mode, planner.Reason) {
	asked, why := r.Asked(cluster)
	switch {
	case asked == nodepool.Off:
		return nodepool.Off, why
	case cluster.Deleting:
		return nodepool.Off, planner.Reason{Code: BeingDeleted, Message: "the RayCluster is being deleted"}
	// Before what was asked: nobody should learn from the code that an annotation would be enough to have the
	// RayCluster scaled.
	case cluster.Queue.Queued():
		return nodepool.Shadow, queued(cluster)
	case asked == nodepool.Shadow && r.leftToSidecar(cluster):
		return nodepool.Shadow, sidecarManages(cluster)
	case asked == nodepool.Shadow:
		return nodepool.Shadow, why
	}
	if obstacle := r.Obstacle(cluster); obstacle.Code != "" {
		return nodepool.Shadow, obstacle
	}
	return nodepool.Managed, why
}

// Asked is the mode that somebody asked for, and who: the annotation of the RayCluster, that of its namespace,
// --mode, the default. The first that there is counts. A namespace speaks to the fleet alone: whoever puts the sidecar
// into a head pod asked for it there. While it is not known what the namespace says, nothing is written: it may say
// shadow or off.
func (r Rules) Asked(cluster nodepool.Cluster) (nodepool.Mode, planner.Reason) {
	asked := func(mode nodepool.Mode, by string) (nodepool.Mode, planner.Reason) {
		return mode, planner.Reason{Code: AsAsked, Message: string(mode) + " by " + by}
	}
	fleet := r.Form != Sidecar
	switch {
	case cluster.Mode != "":
		return asked(cluster.Mode, "the annotation heliostat.dev/mode of the RayCluster")
	case !fleet:
		return asked(cmp.Or(r.Default, nodepool.Managed), "default: this is the sidecar of the RayCluster")
	case cluster.NamespaceUnknown != "":
		return nodepool.Shadow, planner.Reason{Code: NamespaceUnknown, Message: cluster.NamespaceUnknown +
			", so the mode that it sets is not known; annotate the RayCluster with heliostat.dev/mode, or grant get, list and watch on namespaces"}
	case cluster.NamespaceMode != "":
		return asked(cluster.NamespaceMode, "the annotation heliostat.dev/mode of Namespace "+cluster.Key.Namespace)
	case r.Default == "" || r.Default == nodepool.Shadow:
		by := "default"
		if r.Default != "" {
			by = "--mode"
		}
		return nodepool.Shadow, planner.Reason{Code: NotAsked,
			Message: "shadow by " + by + ": neither the RayCluster nor its namespace has the annotation heliostat.dev/mode"}
	}
	return asked(r.Default, "--mode")
}

// Obstacle is what keeps a cluster from being written to although it is asked for; its code is empty where nothing
// does. Each sentence says the way out.
//
// The annotation heliostat.dev/mode of the RayCluster speaks to the fleet. So a sidecar of ours manages its cluster
// exactly while that annotation is absent, and the fleet leaves a cluster with such a sidecar alone exactly then: both
// read the same object, and no handshake can be missed.
func (r Rules) Obstacle(cluster nodepool.Cluster) planner.Reason {
	because := func(code, message string) planner.Reason { return planner.Reason{Code: code, Message: message} }
	switch {
	case cluster.Queue.Queued():
		return queued(cluster)
	case cluster.Queue.Unknown != "":
		return because(QueueUnknown, cluster.Queue.Unknown)
	case r.ReadOnly:
		return because(ReadOnly, "this Heliostat runs with --read-only and writes to nothing, whatever an annotation says")
	case cluster.Unreadable:
		return because(Unreadable, "the RayCluster cannot be read well enough to write to it; see findings")
	case cluster.ManagedElsewhere:
		return because(ManagedElsewhere, "spec.managedBy names another controller")
	case cluster.Suspended:
		return because(Suspended, "spec.suspend is true; set it to false to let the RayCluster be scaled")
	case cluster.Freeze:
		return because(Frozen, "frozen by the annotation heliostat.dev/freeze; `autoscaler unfreeze "+cluster.Key.String()+"` lets it be scaled again")
	case cluster.Head.Sidecar == nodepool.RaySidecar:
		return because(SidecarAlive, "Ray's own autoscaler runs in head pod "+cluster.Head.Pod+
			"; set spec.enableInTreeAutoscaling: false and recreate that pod, or keep heliostat.dev/mode: shadow")
	case r.Form == Sidecar && cluster.Mode == nodepool.Managed:
		return because(Parked, "annotation heliostat.dev/mode: managed hands this cluster to the fleet; remove it to let the sidecar manage")
	case r.leftToSidecar(cluster):
		return sidecarManages(cluster)
	}
	return planner.Reason{}
}

// queued says why a RayCluster in a queue of Kueue is not scaled.
func queued(cluster nodepool.Cluster) planner.Reason {
	code := QueuedByKueue
	if cluster.Queue.Elastic {
		code = ElasticQueuedByKueue
	}
	return planner.Reason{Code: code, Message: cluster.Queue.Refusal()}
}

// leftToSidecar reports whether a sidecar of ours manages the cluster, so that the fleet does not.
func (r Rules) leftToSidecar(cluster nodepool.Cluster) bool {
	return r.Form != Sidecar && cluster.Mode == "" && cluster.Head.Sidecar == nodepool.OurSidecar
}

func sidecarManages(cluster nodepool.Cluster) planner.Reason {
	return planner.Reason{Code: SidecarManages, Message: "the Heliostat sidecar in head pod " + cluster.Head.Pod +
		" manages it; annotate heliostat.dev/mode: managed to hand it to the fleet"}
}

// OnOptIn is what would still keep the cluster from being written to if the RayCluster were annotated
// heliostat.dev/mode: managed; its code is empty where nothing would.
func (r Rules) OnOptIn(cluster nodepool.Cluster) planner.Reason {
	cluster.Mode = nodepool.Managed
	return r.Obstacle(cluster)
}
