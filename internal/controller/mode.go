package controller

import (
	"cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Form is the way Heliostat runs; README.md describes who each is for.
type Form string

// Fleet serves many clusters from one process; Sidecar serves the one cluster whose head pod it runs in.
const (
	Fleet   Form = "fleet"
	Sidecar Form = "sidecar"
)

// Effective returns what may be done with the cluster now, and why. It never allows more than was asked for.
func (c *Config) Effective(cluster nodepool.Cluster) (nodepool.Mode, planner.Reason) {
	asked, why := c.Asked(cluster)
	switch {
	case asked == nodepool.Off:
		return nodepool.Off, why
	case cluster.Deleting:
		return nodepool.Off, planner.Reason{Code: addon.BeingDeleted, Message: "the RayCluster is being deleted"}
	// Before the asked mode: the code must not suggest that an annotation is enough to have the RayCluster scaled.
	case cluster.Queue.Refusal() != "":
		return nodepool.Shadow, queued(cluster)
	case asked == nodepool.Shadow && c.leftToSidecar(cluster):
		return nodepool.Shadow, sidecarManages(cluster)
	case asked == nodepool.Shadow:
		return nodepool.Shadow, why
	}
	if obstacle := c.Obstacle(cluster); obstacle.Code != "" {
		return nodepool.Shadow, obstacle
	}
	return nodepool.Managed, why
}

// Asked returns the mode that somebody asked for, and where: the annotation of the RayCluster, that of its namespace,
// --mode, or the default, whichever is first. A namespace sets the mode of the fleet alone: adding the sidecar to a
// head pod is a request by itself. While the namespace has not been read, nothing is written: it may say shadow or
// off.
func (c *Config) Asked(cluster nodepool.Cluster) (nodepool.Mode, planner.Reason) {
	asked := func(mode nodepool.Mode, by string) (nodepool.Mode, planner.Reason) {
		return mode, planner.Reason{Code: addon.AsAsked, Message: string(mode) + " by " + by}
	}
	fleet := c.Form != Sidecar
	switch {
	case cluster.Mode != "" && cluster.ModeInvalid != "":
		return invalid(cluster, "the RayCluster")
	case cluster.Mode != "":
		return asked(cluster.Mode, "the annotation heliostat.dev/mode of the RayCluster")
	case !fleet:
		return asked(cmp.Or(c.DefaultMode, nodepool.Managed), "default: this is the sidecar of the RayCluster")
	case cluster.NamespaceUnknown != "":
		return nodepool.Shadow, planner.Reason{Code: addon.NamespaceUnknown, Message: cluster.NamespaceUnknown +
			", so the mode that it sets is unknown; annotate the RayCluster with heliostat.dev/mode, or grant get, " +
			"list and watch on namespaces"}
	case cluster.NamespaceMode != "" && cluster.ModeInvalid != "":
		return invalid(cluster, "Namespace "+cluster.Key.Namespace)
	case cluster.NamespaceMode != "":
		return asked(cluster.NamespaceMode, "the annotation heliostat.dev/mode of Namespace "+cluster.Key.Namespace)
	case c.DefaultMode == "" || c.DefaultMode == nodepool.Shadow:
		by := "default"
		if c.DefaultMode != "" {
			by = "--mode"
		}
		return nodepool.Shadow, planner.Reason{
			Code: addon.NotAsked,
			Message: "shadow by " + by + ": neither the RayCluster nor its namespace has the annotation " +
				"heliostat.dev/mode",
		}
	}
	return asked(c.DefaultMode, "--mode")
}

// invalid returns the mode of a cluster whose annotation is not a mode. of is the object that has the annotation.
func invalid(cluster nodepool.Cluster, of string) (nodepool.Mode, planner.Reason) {
	return nodepool.Shadow, planner.Reason{Code: addon.AsAsked, Message: "shadow because the annotation " +
		"heliostat.dev/mode of " + of + " is " + cluster.ModeInvalid + "; set it to managed, shadow or off"}
}

// Obstacle returns what prevents writing to a cluster that is asked to be managed; its code is empty if nothing does.
// Each message says what to do.
//
// The annotation heliostat.dev/mode of the RayCluster is for the fleet. So the sidecar manages its cluster exactly
// while that annotation is absent, and exactly then the fleet leaves the cluster to the sidecar: both read the same
// object, and no handshake can be missed.
func (c *Config) Obstacle(cluster nodepool.Cluster) planner.Reason {
	because := func(code, message string) planner.Reason { return planner.Reason{Code: code, Message: message} }
	switch {
	case cluster.Queue.Refusal() != "":
		return queued(cluster)
	case cluster.Queue.Unknown != "":
		return because(addon.QueueUnknown, cluster.Queue.Unknown)
	case c.ReadOnly:
		return because(addon.ReadOnly, "this Heliostat runs with --read-only and writes nothing, whatever an "+
			"annotation says")
	case cluster.Unreadable:
		return because(addon.Unreadable, "not enough of the RayCluster can be read to write to it; see findings")
	case cluster.ManagedElsewhere:
		return because(addon.ManagedElsewhere, "spec.managedBy names another controller")
	case cluster.Suspended && cluster.Queue.Queued():
		return because(addon.Suspended, suspendedByKueue(cluster.Queue))
	case cluster.Suspended:
		return because(addon.Suspended, "spec.suspend is true; set it to false to have the RayCluster scaled")
	case cluster.Freeze:
		return because(addon.Frozen, "frozen by the annotation heliostat.dev/freeze; `autoscaler unfreeze "+
			cluster.Key.String()+"` resumes scaling")
	case cluster.Head.Sidecar == nodepool.RaySidecar:
		return because(addon.SidecarAlive, "Ray's own autoscaler runs in head pod "+cluster.Head.Pod+
			"; set spec.autoscalerOptions.image to Heliostat's and recreate that pod, or keep heliostat.dev/mode: "+
			"shadow")
	case cluster.Head.Sidecar == nodepool.UnknownSidecar:
		return because(addon.SidecarAlive, "the container autoscaler of head pod "+cluster.Head.Pod+" may scale the "+
			"RayCluster: neither its image (heliostat, or the variable HELIOSTAT_SIDECAR) nor its command and "+
			"arguments (sleep infinity) say that it does not; recreate that pod with one that does, or keep "+
			"heliostat.dev/mode: shadow")
	case c.Form == Sidecar && cluster.Mode == nodepool.Managed:
		return because(
			addon.Parked,
			"annotation heliostat.dev/mode: managed hands this cluster to the fleet; remove it to let the sidecar "+
				"manage it",
		)
	case c.leftToSidecar(cluster):
		return sidecarManages(cluster)
	}
	return planner.Reason{}
}

// queued returns why a RayCluster in a queue of Kueue is not scaled.
func queued(cluster nodepool.Cluster) planner.Reason {
	code := addon.QueuedByKueue
	if cluster.Queue.Elastic {
		code = addon.ElasticQueuedByKueue
	}
	return planner.Reason{Code: code, Message: cluster.Queue.Refusal()}
}

// suspendedByKueue says what a suspended RayCluster in a queue waits for. Nothing is written meanwhile.
func suspendedByKueue(queue nodepool.Queue) string {
	why := "Kueue holds it back (queue " + queue.Name + ", spec.suspend is true)"
	if queue.Quota != nil && queue.Quota.Pending != nil && queue.Quota.Pending.Message != "" {
		why += ": " + queue.Quota.Pending.Message
	}
	return why + "; Heliostat scales it after Kueue starts it"
}

// leftToSidecar reports whether Heliostat's sidecar manages the cluster, so that the fleet does not.
func (c *Config) leftToSidecar(cluster nodepool.Cluster) bool {
	return c.Form != Sidecar && cluster.Mode == "" && cluster.Head.Sidecar == nodepool.OurSidecar
}

func sidecarManages(cluster nodepool.Cluster) planner.Reason {
	return planner.Reason{Code: addon.SidecarManages, Message: "the Heliostat sidecar in head pod " + cluster.Head.Pod +
		" manages it; annotate heliostat.dev/mode: managed to hand it to the fleet"}
}
