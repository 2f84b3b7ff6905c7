package landing

import (
	"cmp"
	"slices"
)

// Neighbors is what decides beside which pods on the same node a pod may run: its own namespace and labels, by which
// other pods select it, and what it requires of others. Terms that only prefer are left out, as the scheduler's filters
// leave them out.
type Neighbors struct {
	Namespace string
	Labels    map[string]string
	// Apart are the terms of the required anti-affinity, and Spread the topology spread constraints with
	// whenUnsatisfiable: DoNotSchedule, both with HostnameLabel as topologyKey.
	Apart  []PodTerm
	Spread []SpreadTerm
	// HostPorts are the ports of the node that the pod takes.
	HostPorts []HostPort
	// Beyond names a rule that depends on pods on other nodes: required affinity, or a term with another topologyKey.
	// Such a rule is not simulated, so it is unknown how many of the pods can run; empty if there is none.
	Beyond string
}

// PodTerm selects pods.
type PodTerm struct {
	Selector PodSelector
	// Namespaces and NamespaceSelector say in which namespaces it selects; without both, in the pod's own. An empty
	// NamespaceSelector, other than nil, selects all.
	Namespaces        []string
	NamespaceSelector *PodSelector
}

// PodSelector is a label selector; it matches if all requirements do. Nothing says that the object has no selector,
// which selects no pods. A selector without requirements selects all.
type PodSelector struct {
	Nothing      bool
	Requirements []Requirement
}

// SpreadTerm is a topology spread constraint. It counts pods of the pod's own namespace.
type SpreadTerm struct {
	MaxSkew, MinDomains int64
	Selector            PodSelector
	// HonorsTaints: nodes with a taint that the pod does not tolerate are no domains (nodeTaintsPolicy: Honor).
	// IgnoresAffinity: nodes that the pod's node affinity refuses are domains too (nodeAffinityPolicy: Ignore).
	HonorsTaints, IgnoresAffinity bool
}

// Matches reports whether labels match the selector.
func (s PodSelector) Matches(labels map[string]string) bool {
	return !s.Nothing && !slices.ContainsFunc(s.Requirements, func(r Requirement) bool {
		value, set := labels[r.Key]
		return !r.Matches(value, set)
	})
}

// Refuses reports whether the two pods may not be on one node: by the required anti-affinity of either, or by a port of
// the node that both take. Where labels of namespaces would decide, it assumes that they may not.
func (n *Neighbors) Refuses(other *Neighbors) bool {
	return n.repels(other) || other.repels(n) || n.sharesPort(other)
}

func (n *Neighbors) repels(other *Neighbors) bool {
	return slices.ContainsFunc(n.Apart, func(term PodTerm) bool { return n.maySelect(term, other) })
}

// counts reports whether a topology spread constraint counts the other pod.
func (n *Neighbors) counts(term SpreadTerm, other *Neighbors) bool {
	return n.beside(other) && term.Selector.Matches(other.Labels)
}

// beside reports whether both are in one namespace. Without one, a manifest means "default", as kubectl does.
func (n *Neighbors) beside(other *Neighbors) bool {
	const unnamed = "default"
	return cmp.Or(n.Namespace, unnamed) == cmp.Or(other.Namespace, unnamed)
}

// namespaceName is the label with its name that Kubernetes sets on each namespace. The others are unknown here.
const namespaceName = "kubernetes.io/metadata.name"

// maySelect reports whether a term selects a pod, or may do so by unknown labels of the pod's namespace.
func (n *Neighbors) maySelect(term PodTerm, other *Neighbors) bool {
	switch {
	case !term.Selector.Matches(other.Labels):
		return false
	case slices.Contains(term.Namespaces, other.Namespace):
		return true
	case len(term.Namespaces) == 0 && term.NamespaceSelector == nil:
		return n.beside(other)
	case term.NamespaceSelector == nil || term.NamespaceSelector.Nothing:
		return false
	}
	return !slices.ContainsFunc(term.NamespaceSelector.Requirements, func(r Requirement) bool {
		return r.Key == namespaceName && !r.Matches(other.Namespace, true)
	})
}

// isDomain reports whether the node is a domain for the spread of the pods even if it has no room for them: by default
// if their node affinity allows it, whatever taints it has (docs/reference/facts.md#domains-of-a-spread).
func (p *PodShape) isDomain(node *Node) bool {
	return slices.ContainsFunc(p.Neighbors.Spread, func(term SpreadTerm) bool {
		if term.HonorsTaints && len(p.repelled(node, nil)) > 0 {
			return false
		}
		return term.IgnoresAffinity || p.selected(node) && p.suits(node)
	})
}

// selected reports whether the nodeSelector allows the node.
func (p *PodShape) selected(node *Node) bool {
	for key, value := range p.Selector {
		if have, set := node.Labels[key]; !set || have != value {
			return false
		}
	}
	return true
}
