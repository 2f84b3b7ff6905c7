package watch

import (
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// missingNodeGrace is for how long a node that a pod is bound to may be missing among the nodes before it is gone: pods and
// nodes come by two watches, and the one of nodes may be behind.
const missingNodeGrace = 5 * time.Second

// absentNodes are names of nodes that are not there. It is bounded by the nodes that pods are bound to.
type absentNodes struct {
	deleted map[string]bool      // seen, and then deleted
	missing map[string]time.Time // never seen; since when a pod was seen that is bound to it
}

// nodeDeleted notes that a node that was seen is gone, and nodeSeen that one is there. Both are called with n.mu held.
func (n *nodes) nodeDeleted(name string) {
	if n.absent.deleted == nil {
		n.absent.deleted = map[string]bool{}
	}
	n.absent.deleted[name] = true
}

func (n *nodes) nodeSeen(name string) {
	delete(n.absent.deleted, name)
	delete(n.absent.missing, name)
}

// maxAbsent bounds how many deleted nodes are remembered; then all are forgotten, and missing nodes are found by time.
const maxAbsent = 10_000

// markGone marks the workers of a cluster that was just read whose node is not there. The node of a pod that is bound a
// moment ago may not have been seen yet.
func (n *nodes) markGone(cluster *nodepool.Cluster, view *nodeView) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.absent.deleted)+len(n.absent.missing) > maxAbsent {
		n.absent = absentNodes{}
	}
	for i := range cluster.Workers {
		w := &cluster.Workers[i]
		if w.Node == "" || w.Failed {
			continue
		}
		if _, there := view.find(w.Node); there {
			continue
		}
		if _, there := n.byName[w.Node]; !there {
			w.NodeGone = n.isGone(w.Node, time.Now())
		}
	}
}

// isGone is called with n.mu held.
func (n *nodes) isGone(name string, now time.Time) bool {
	if n.absent.deleted[name] {
		return true
	}
	since, noted := n.absent.missing[name]
	if !noted {
		if n.absent.missing == nil {
			n.absent.missing = map[string]time.Time{}
		}
		since, n.absent.missing[name] = now, now
	}
	return now.Sub(since) >= missingNodeGrace
}
