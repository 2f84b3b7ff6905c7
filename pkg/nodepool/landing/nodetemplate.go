package landing

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// allows reports whether a node of the template can satisfy a requirement on a label. What the template leaves open is
// allowed.
func (t *NodeTemplate) allows(r Requirement) bool {
	if own, set := t.Labels[r.Key]; set {
		return r.Matches(own, true)
	}
	named := false
	for _, own := range t.Requirements {
		if own.Key != r.Key {
			continue
		}
		named = true
		if own.Operator == "DoesNotExist" && !r.Matches("", false) {
			return false
		}
		if own.Operator == "In" &&
			!slices.ContainsFunc(own.Values, func(value string) bool { return r.Matches(value, true) }) {
			return false
		}
		if r.Operator == "In" &&
			!slices.ContainsFunc(r.Values, func(value string) bool { return own.Matches(value, true) }) {
			return false
		}
	}
	return named || provided(r.Key) || r.Matches("", false)
}

// NodeTemplate is what a Karpenter NodePool specifies for every node that it adds: labels, possible values of other
// labels, and taints.
type NodeTemplate struct {
	Labels       map[string]string
	Requirements []Requirement
	Taints       []sharing.Taint
}

// refuses reports whether no node of the template accepts a pod of this shape. What the template leaves open refuses
// nothing.
func (t *NodeTemplate) refuses(p *PodShape) bool {
	refused := func(r Requirement) bool { return !t.allows(r) }
	if !slices.ContainsFunc(p.labelAlternatives(),
		func(all []Requirement) bool { return !slices.ContainsFunc(all, refused) }) {
		return true
	}
	made := &Node{Labels: t.Labels}
	return slices.ContainsFunc(t.Taints, func(taint sharing.Taint) bool { return !p.Tolerates(made, taint) })
}
