package landing

import (
	"cmp"
	"slices"
	"strings"

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
		if foreign && p.counts(name) && !there(name) {
			return true
		}
	}
	return false
}

// karpenterPool is the label of the nodes that Karpenter made.
const karpenterPool = "karpenter.sh/nodepool"

// allows reports whether a node of the template can satisfy a requirement on a label. What the template leaves open is
// allowed.
func (t *NodeTemplate) allows(r Requirement) bool {
	if own, set := t.Labels[r.Key]; set {
		return r.matches(own, true)
	}
	named := false
	for _, own := range t.Requirements {
		if own.Key != r.Key {
			continue
		}
		named = true
		if own.Operator == "DoesNotExist" && !r.matches("", false) {
			return false
		}
		if own.Operator == "In" &&
			!slices.ContainsFunc(own.Values, func(value string) bool { return r.matches(value, true) }) {
			return false
		}
		if r.Operator == "In" &&
			!slices.ContainsFunc(r.Values, func(value string) bool { return own.matches(value, true) }) {
			return false
		}
	}
	return named || provided(r.Key) || r.matches("", false)
}

// NodeTemplate is what a Karpenter NodePool specifies for every node that it adds: labels, possible values of other
// labels, and taints.
type NodeTemplate struct {
	Labels       map[string]string
	Requirements []Requirement
	Taints       []sharing.Taint
}

// refusal says why no node of the template accepts a pod of this shape; nil if one may. What the template leaves open
// refuses nothing.
func (t *NodeTemplate) refusal(p *PodShape) (why func() string) {
	made := &Node{Labels: t.Labels}
	for _, taint := range t.Taints {
		if !p.Tolerates(made, taint) {
			return func() string { return " has taint " + taint.String() + " which the group does not tolerate" }
		}
	}
	var first *Requirement
	for _, all := range p.labelAlternatives() {
		at := slices.IndexFunc(all, func(r Requirement) bool { return !t.allows(r) })
		if at < 0 {
			return nil
		}
		first = cmp.Or(first, &all[at])
	}
	return func() string {
		if first == nil {
			return " does not match the required node affinity"
		}
		return " adds no node with label " + first.Key + " " + first.Operator + " " + strings.Join(first.Values, ", ")
	}
}

// Refusal returns why the pool's autoscaler adds no node for a pod, if the pool is a NodePool whose template is known;
// empty if it could.
func (r *Room) Refusal(p *PodShape) string {
	if r.Template == nil {
		return ""
	}
	name := "NodePool " + r.Pool
	switch why := r.Template.refusal(p); {
	case r.elsewhere(p):
		return name + " is not the one that the group selects"
	case why != nil:
		return name + why()
	}
	return ""
}
