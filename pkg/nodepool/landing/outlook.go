package landing

import (
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// outlook says whether a node, or another node like it, could hold a pod at another time. A larger value is worse.
type outlook int

const (
	// holdsNow: the node could hold a pod if it were empty.
	holdsNow outlook = iota
	// holdsLater: it is the right kind of node at the wrong time: cordoned, not ready, or with unhealthy cards.
	holdsLater
	// unsaid: what the pod needs is unknown. The node is coming up, another node of its pool may have another zone or
	// instance type, or a declared shape leaves it open.
	unsaid
	// never: a node like this one cannot hold a pod, however long the pod waits.
	never
)

// outlookOn returns the outlook of a node for the pod, by what keeps the pod away.
func (p *PodShape) outlookOn(node *Node, mismatches []mismatch) outlook {
	worst := holdsNow
	for _, m := range mismatches {
		worst = max(worst, p.outlook(node, m))
	}
	return worst
}

func (p *PodShape) outlook(node *Node, m mismatch) outlook {
	switch m.kind {
	case notReady, cordoned, unhealthy:
		return holdsLater
	case tainted:
		if passingTaint(m.taint) || !node.Ready {
			return unsaid
		}
	case unselected:
		return node.labelOutlook(m.what)
	case unsuited:
		return p.affinityOutlook(node)
	case uncounted:
		return unsaid
	case notAnnounced:
		// The kubelet always reports ephemeral storage, so a description without it is incomplete.
		if m.what == "ephemeral-storage" || !node.Ready || node.open(m.what) != "" {
			return unsaid
		}
	case notNamed, tooSmall, noPods, otherMode, cardTooSmall:
	}
	return never
}

// open returns why pods may get a resource on the node that nothing says it has; empty if they do not.
func (n *Node) open(resource string) string {
	why, is := n.Open[resource]
	if !is && sharing.MayBeClass(resource) {
		why = n.Open[""]
	}
	return why
}

// affinityOutlook returns the outlook of the term that comes nearest.
func (p *PodShape) affinityOutlook(node *Node) outlook {
	best := never
	for _, term := range p.Affinity {
		worst := holdsNow
		if len(term.Labels)+len(term.Fields) == 0 {
			continue // An empty term matches nothing.
		}
		for _, r := range term.Labels {
			if value, set := node.label(r.Key); !r.matches(value, set) {
				worst = max(worst, node.labelOutlook(r.Key))
			}
		}
		for _, r := range term.Fields {
			if r.Key != nameField || !r.matches(node.Name, true) {
				worst = never
			}
		}
		best = min(best, worst)
	}
	return best
}

// labelOutlook returns the outlook of a node whose value of a label does not match.
func (n *Node) labelOutlook(key string) outlook {
	_, set := n.label(key)
	known := strings.Contains(key, "kubernetes.io/") && !isPoolLabel(key)
	switch {
	case key == HostnameLabel:
		return never
	case n.Declared && !set && known, !n.Declared && variesInPool[key], !n.Ready && !set:
		return unsaid
	}
	return never
}

// variesInPool are labels of which the nodes of one pool may have different values.
var variesInPool = map[string]bool{
	"topology.kubernetes.io/zone": true, "failure-domain.beta.kubernetes.io/zone": true,
	"node.kubernetes.io/instance-type": true, "beta.kubernetes.io/instance-type": true,
}

// HostnameLabel is the label of a node with a value of its own.
const HostnameLabel = "kubernetes.io/hostname"

// hostnames returns the nodes that the pod names, by their hostname or their name; false if it may run on others.
func (p *PodShape) hostnames() (names []string, named bool) {
	if p.NodeName != "" {
		return []string{p.NodeName}, true
	}
	return p.required(func(key string) bool { return key == HostnameLabel || key == nameField })
}

// passingTaint reports whether a taint describes the state of one node, and not the kind of all nodes of its pool:
// Kubernetes, node autoscalers and agents that start on a node set and remove such taints
// (docs/reference/facts.md#taints-that-pass).
func passingTaint(taint sharing.Taint) bool {
	for _, prefix := range []string{
		"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/", "ToBeDeletedByClusterAutoscaler",
		"DeletionCandidateOfClusterAutoscaler", "ignore-taint.cluster-autoscaler.kubernetes.io/",
		"startup-taint.cluster-autoscaler.kubernetes.io/", "status-taint.cluster-autoscaler.kubernetes.io/",
	} {
		if strings.HasPrefix(taint.Key, prefix) {
			return true
		}
	}
	return strings.HasSuffix(taint.Key, "/agent-not-ready")
}
