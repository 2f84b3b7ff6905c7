package nodes

import (
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// missingNodeGrace is how long a node with a bound pod can be missing before it counts as gone: pods and nodes come
// from two watches, and the one of nodes may lag.
const missingNodeGrace = 5 * time.Second

// absentNodes are names of nodes that do not exist. The nodes that pods are bound to bound their number.
type absentNodes struct {
	deleted map[string]bool      // seen, and then deleted
	missing map[string]time.Time // never seen; since when a pod is bound to it
	// unread: the last call to read nodes failed, so nodes may exist that have not been seen.
	unread bool
}

// nodeDeleted notes that a known node is gone, and nodeSeen that a node exists. The caller holds n.mu.
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

// failed notes that nodes cannot be read now. Until they can, a node that was never seen is not missing: otherwise each
// worker on a new machine would count as lost, and so would its replacement.
func (n *nodes) failed(err error) {
	n.log.Debug("reading nodes failed; retrying", "reason", err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.absent.missing, n.absent.unread = nil, true
}

// maxAbsent bounds how many absent nodes are remembered. Beyond it all are forgotten, and missing nodes are found by
// time.
const maxAbsent = 10_000

// markGone marks the workers of a cluster whose node is gone. A pod may be bound to a node that has not been seen yet.
func (n *nodes) markGone(cluster *nodepool.Cluster, view *nodeView) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.absent.deleted)+len(n.absent.missing) > maxAbsent {
		n.absent = absentNodes{unread: n.absent.unread}
	}
	for i := range cluster.Workers {
		w := &cluster.Workers[i]
		if w.Node == "" || w.Failed {
			continue
		}
		if _, there := n.byName[w.Node]; !there && view.stock.Node(w.Node) == nil {
			w.NodeGone = n.isGone(w.Node, time.Now())
		}
	}
}

// isGone reports whether a node is gone. The caller holds n.mu.
func (n *nodes) isGone(name string, now time.Time) bool {
	if n.absent.deleted[name] {
		return true
	}
	if n.absent.unread {
		return false
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
