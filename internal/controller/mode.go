package controller

import (
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Why a cluster is not managed: stable codes of Decision.Why and of Events.
const (
	AsAsked          = "AsAsked"
	ReadOnly         = "ReadOnly"
	Frozen           = "Frozen"
	Suspended        = "Suspended"
	BeingDeleted     = "BeingDeleted"
	ManagedElsewhere = "ManagedElsewhere"
	Unreadable       = "Unreadable"
	SidecarAlive     = "SidecarAlive"
	SidecarManages   = "SidecarManages"
	Parked           = "Parked"
)

// effectiveMode says what may be done with the cluster now, and why. It only ever takes away from what was asked.
//
// The annotation heliostat.dev/mode speaks to the fleet. So a sidecar of ours manages its cluster exactly while the
// annotation is absent, and the fleet leaves a cluster with such a sidecar alone exactly then: both read the same
// object, and no handshake can be missed.
func (c Config) effectiveMode(cluster nodepool.Cluster) (nodepool.Mode, planner.Reason) {
	asked, from := cluster.Mode, "annotation heliostat.dev/mode"
	if asked == "" {
		asked, from = c.DefaultMode, "the default"
	}
	shadow := func(code, message string) (nodepool.Mode, planner.Reason) {
		return nodepool.Shadow, planner.Reason{Code: code, Message: message}
	}
	switch {
	case asked == nodepool.Off:
		return nodepool.Off, planner.Reason{Code: AsAsked, Message: "off by " + from}
	case cluster.Deleting:
		return nodepool.Off, planner.Reason{Code: BeingDeleted, Message: "the RayCluster is being deleted"}
	case asked == nodepool.Shadow:
		return shadow(AsAsked, "shadow by "+from)
	case c.ReadOnly:
		return shadow(ReadOnly, "this Heliostat runs with --read-only and writes to nothing, whatever an annotation says")
	case cluster.Unreadable:
		return shadow(Unreadable, "the RayCluster cannot be read well enough to write to it; see findings")
	case cluster.ManagedElsewhere:
		return shadow(ManagedElsewhere, "spec.managedBy names another controller")
	case cluster.Suspended:
		return shadow(Suspended, "spec.suspend is true")
	case cluster.Freeze:
		return shadow(Frozen, "frozen by the annotation heliostat.dev/freeze; `autoscaler unfreeze "+cluster.Key.String()+"` lets it be scaled again")
	case cluster.Head.Sidecar == nodepool.RaySidecar:
		return shadow(SidecarAlive, "Ray's own autoscaler runs in head pod "+cluster.Head.Pod+
			"; set spec.enableInTreeAutoscaling: false and recreate that pod, or keep heliostat.dev/mode: shadow")
	case c.Form == Sidecar && cluster.Mode == nodepool.Managed:
		return shadow(Parked, "annotation heliostat.dev/mode: managed hands this cluster to the fleet; remove it to let the sidecar manage")
	case c.Form == Fleet && cluster.Mode == "" && cluster.Head.Sidecar == nodepool.OurSidecar:
		return shadow(SidecarManages, "the Heliostat sidecar in head pod "+cluster.Head.Pod+
			" manages it; annotate heliostat.dev/mode: managed to hand it to the fleet")
	}
	return nodepool.Managed, planner.Reason{Code: AsAsked, Message: "managed by " + from}
}
