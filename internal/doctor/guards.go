package doctor

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// guard says whether something keeps Karpenter from evicting the working pods of a group.
type guard uint8

// guardUnknown: nothing among the objects shows it.
const (
	guardUnknown guard = iota
	guarded
	unguarded
)

// guardOf says whether a group, or a head, is guarded. The annotation of its pod template is proof, and so is a pod of
// the RayCluster that Heliostat has guarded: it guards all of a managed RayCluster, and its head always. Otherwise the
// flags of Heliostat's Deployment count, and then that a running head has no guard.
func (x *inventory) guardOf(g rayGroup) guard {
	cluster := g.Of.Cluster
	ours := cluster.Head.Guard.DoNotDisrupt == nodepool.MarkedByUs ||
		slices.ContainsFunc(cluster.Workers, func(w nodepool.Worker) bool {
			return w.Guard.DoNotDisrupt == nodepool.MarkedByUs
		})
	ofHead := g.Workers == nil && cluster.Head.Guard.DoNotDisrupt == nodepool.MarkedByUser
	template := g.Text("template", "metadata", "annotations", nodepool.DoNotDisruptAnnotation)
	if ours || ofHead || template == nodepool.DoNotDisrupt {
		return guarded
	}
	if service, found := x.onlyService(); found {
		if state := service.guards(g.Of); state != guardUnknown {
			return state
		}
	}
	if head := x.headPod(g.Of); head != nil && head.Root().Text("status", "phase") == "Running" {
		return unguarded
	}
	return guardUnknown
}
