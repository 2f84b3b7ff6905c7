package landing

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// karpenterKnows are prefixes of labels that Karpenter and its providers set on nodes: a pod may select by them even if
// no NodePool names them (docs/reference/facts.md#what-karpenter-adds-nodes-for).
var karpenterKnows = []string{
	"kubernetes.io/", "beta.kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/",
	"failure-domain.beta.kubernetes.io/", "topology.k8s.aws/", "topology.ebs.csi.aws.com/",
	"karpenter.sh/", "karpenter.k8s.aws/", "karpenter.azure.com/", "karpenter.k8s.gcp/",
	"eks.amazonaws.com/instance-", "eks.amazonaws.com/compute-type", "kubernetes.azure.com/",
}

// karpenterProvides are prefixes of the extended resources that Karpenter's providers know from instance types.
// Karpenter adds no node for a pod that requests any other.
var karpenterProvides = []string{
	"nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "habana.ai/gaudi", "vpc.amazonaws.com/",
}

func beginsWithOne(name string, beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(name, b) })
}

// ofAnotherPool reports whether the label names a pool of node groups. Nodes that Karpenter adds are in none.
func ofAnotherPool(label string) bool {
	return label != karpenterPool && slices.ContainsFunc(sharing.PoolLabels,
		func(row sharing.PoolLabel) bool { return row.Key == label && row.Provider != "karpenter" })
}

// provided reports whether the label may be on a node although neither the NodePool nor any of its nodes shows it.
func provided(label string) bool {
	return beginsWithOne(label, karpenterKnows) && !ofAnotherPool(label)
}

// asksForeign reports whether a pod requests an extended resource that Karpenter's providers do not know, and that is
// not there either.
func asksForeign(p *PodShape, there func(name string) bool) bool {
	for name := range p.Requests {
		foreign := strings.Contains(name, "/") && !beginsWithOne(name, karpenterProvides)
		if foreign && p.Counts(name) && !there(name) {
			return true
		}
	}
	return false
}

// unlike reports whether a node that Karpenter made shows that no other node of its NodePool accepts the pods: it lacks
// a label that only the NodePool could set, has a taint, or lacks a device that no instance type known to Karpenter
// has. A different value of a label shows nothing, because a NodePool may allow several.
func unlike(p *PodShape, node *Node, template *NodeTemplate) bool {
	// Devices that a DeviceClass supplies are on some instance types of a NodePool and not on others.
	if asksForeign(p, func(name string) bool { return node.Allocatable[name] > 0 || byClaim(name) }) {
		return true
	}
	if template != nil {
		return false // the template is more complete about labels and taints than a node
	}
	lacks := func(r Requirement) bool {
		_, set := node.Labels[r.Key]
		return !set && !provided(r.Key) && !r.Matches("", false)
	}
	if !slices.ContainsFunc(p.labelAlternatives(),
		func(all []Requirement) bool { return !slices.ContainsFunc(all, lacks) }) {
		return true
	}
	return node.Ready && slices.ContainsFunc(node.Taints, func(taint sharing.Taint) bool {
		return !passingTaint(taint) && !p.Tolerates(node, taint)
	})
}

// byClaim reports whether pods get a resource by a ResourceClaim alone.
func byClaim(name string) bool {
	return strings.HasPrefix(name, gpuinfo.ClaimPrefix) || strings.HasPrefix(name, gpuinfo.ClassPrefix)
}

// karpenterPool is the label of the nodes that Karpenter made.
const karpenterPool = "karpenter.sh/nodepool"
