package podfit

import (
	"cmp"
	"slices"
)

// Neighbors is what decides beside which pods a pod may run: its own namespace and labels, by which other pods select
// it, and what it requires of others. Terms that only prefer are left out, as the scheduler's filters leave them out.
type Neighbors struct {
	Namespace string
	Labels    map[string]string
	// Apart are the terms of the required anti-affinity, Together those of the required affinity.
	Apart, Together []PodTerm
	// Spread are the topology spread constraints with whenUnsatisfiable: DoNotSchedule.
	Spread []SpreadTerm
	// HostPorts are the ports of the node that the pod takes.
	HostPorts []HostPort
}

// PodTerm selects pods, and the label whose value makes nodes one domain.
type PodTerm struct {
	TopologyKey string
	Selector    PodSelector
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
	TopologyKey         string
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

// MayRepel reports whether one pod's required anti-affinity keeps the other out of a domain. Where labels of namespaces
// would decide, it assumes that it does.
func (n *Neighbors) MayRepel(term PodTerm, other *Neighbors) bool {
	selects, sure := n.selects(term, other)
	return selects || !sure
}

// Attracts reports whether a term of the required affinity selects the other pod. Where labels of namespaces would
// decide, it assumes that it does not.
func (n *Neighbors) Attracts(term PodTerm, other *Neighbors) bool {
	selects, sure := n.selects(term, other)
	return selects && sure
}

// Counts reports whether a topology spread constraint counts the other pod.
func (n *Neighbors) Counts(term SpreadTerm, other *Neighbors) bool {
	return n.beside(other) && term.Selector.Matches(other.Labels)
}

// beside reports whether both are in one namespace. Without one, a manifest means "default", as kubectl does.
func (n *Neighbors) beside(other *Neighbors) bool {
	const unnamed = "default"
	return cmp.Or(n.Namespace, unnamed) == cmp.Or(other.Namespace, unnamed)
}

// namespaceName is the label with its name that Kubernetes sets on each namespace. The others are unknown here.
const namespaceName = "kubernetes.io/metadata.name"

// selects returns whether a term selects a pod. It is not sure if that depends on unknown labels of a namespace.
func (n *Neighbors) selects(term PodTerm, other *Neighbors) (selects, sure bool) {
	if !term.Selector.Matches(other.Labels) {
		return false, true
	}
	switch {
	case slices.Contains(term.Namespaces, other.Namespace):
		return true, true
	case len(term.Namespaces) == 0 && term.NamespaceSelector == nil:
		return n.beside(other), true
	case term.NamespaceSelector == nil || term.NamespaceSelector.Nothing:
		return false, true
	}
	sure = true
	for _, r := range term.NamespaceSelector.Requirements {
		switch {
		case r.Key != namespaceName:
			sure = false
		case !r.Matches(other.Namespace, true):
			return false, true
		}
	}
	return sure, sure
}

// TopologyKeys returns the keys of all terms, sorted.
func (n *Neighbors) TopologyKeys() []string {
	var keys []string
	for _, terms := range [][]PodTerm{n.Apart, n.Together} {
		for _, t := range terms {
			keys = append(keys, t.TopologyKey)
		}
	}
	for _, t := range n.Spread {
		keys = append(keys, t.TopologyKey)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// IsDomain reports whether the node is a domain for the spread of the pods even if it has no room for them: by default
// if their node affinity allows it, whatever taints it has (docs/reference/facts.md#domains-of-a-spread).
func (p *PodShape) IsDomain(node *Node) bool {
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
