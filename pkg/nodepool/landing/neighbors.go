package landing

import (
	"cmp"
	"slices"
	"strconv"
)

// Neighbors is what decides beside which pods on the same node a pod may run: its own namespace and labels, by which
// other pods select it, and what it requires of others. Terms that only prefer are left out, as the scheduler's filters
// leave them out.
type Neighbors struct {
	Namespace string
	Labels    map[string]string
	// Apart are the terms of the required anti-affinity with HostnameLabel as topologyKey.
	Apart []PodTerm
	// HostPorts are the ports of the node that the pod takes.
	HostPorts []HostPort
	// Domain keeps the hosts of a replica together.
	Domain ReplicaDomain
	// Beyond names a rule that depends on pods on other nodes: required affinity, a topology spread constraint with
	// whenUnsatisfiable: DoNotSchedule, or anti-affinity with another topologyKey. Such a rule is not simulated but for
	// Domain, so it is unknown how many of the pods can run; empty if there is none.
	Beyond string
}

// constrain reports whether the pod's own rules keep pods from nodes.
func (n *Neighbors) constrain() bool { return len(n.Apart)+len(n.HostPorts) > 0 }

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

// matches reports whether labels match the selector.
func (s PodSelector) matches(labels map[string]string) bool {
	return !s.Nothing && !slices.ContainsFunc(s.Requirements, func(r Requirement) bool {
		value, set := labels[r.Key]
		return !r.matches(value, set)
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
	case !term.Selector.matches(other.Labels):
		return false
	case slices.Contains(term.Namespaces, other.Namespace):
		return true
	case len(term.Namespaces) == 0 && term.NamespaceSelector == nil:
		return n.beside(other)
	case term.NamespaceSelector == nil || term.NamespaceSelector.Nothing:
		return false
	}
	return !slices.ContainsFunc(term.NamespaceSelector.Requirements, func(r Requirement) bool {
		return r.Key == namespaceName && !r.matches(other.Namespace, true)
	})
}

// SelectsItself reports whether a term selects pods like this one.
func (n *Neighbors) SelectsItself(term PodTerm) bool { return n.maySelect(term, n) }

// HostPort is a port in the network of the node itself. Two pods that take the same one do not fit on one node
// (docs/reference/facts.md#ports-of-the-node).
type HostPort struct {
	// IP is the address on which the pod listens; empty or 0.0.0.0 means all of them.
	IP string
	// Protocol is TCP if it is empty.
	Protocol string
	Port     int64
}

// sharesPort reports whether both pods take the same port of a node, as the scheduler's filter NodePorts decides it.
func (n *Neighbors) sharesPort(other *Neighbors) bool {
	return slices.ContainsFunc(n.HostPorts, func(port HostPort) bool {
		return slices.ContainsFunc(other.HostPorts, port.conflicts)
	})
}

func (p HostPort) conflicts(other HostPort) bool {
	const all, standard = "0.0.0.0", "TCP"
	ip, otherIP := cmp.Or(p.IP, all), cmp.Or(other.IP, all)
	return p.Port == other.Port && cmp.Or(p.Protocol, standard) == cmp.Or(other.Protocol, standard) &&
		(ip == otherIP || ip == all || otherIP == all)
}

// nodePod is a pod on a node as terms of other pods see it.
type nodePod struct {
	node string
	*Neighbors
}

// podsOn returns the pods on the nodes that are wanted.
func podsOn(nodes []Node, wanted func(*Neighbors) bool) (pods []nodePod) {
	for i := range nodes {
		if nodes[i].Use == nil {
			continue
		}
		for _, pod := range nodes[i].Use.Pods {
			if wanted(pod) {
				pods = append(pods, nodePod{nodes[i].Name, pod})
			}
		}
	}
	return pods
}

// constrain returns the pods of the kinds with their constraints, and by node the pods that these count, by the name of
// their kind. Only pods with anti-affinity of their own matter to kinds without terms.
func (s *Nodes) constrain(kinds []Kind) (pods []Pod, on map[string]map[string]int64) {
	pods, beside := make([]Pod, len(kinds)), make([]*Neighbors, len(kinds))
	candidates := s.repelling
	for i := range kinds {
		pods[i], beside[i] = kinds[i].Pod, &kinds[i].Shape.Neighbors
		if beside[i].constrain() {
			candidates = s.pods()
		}
	}
	others := make([]*Neighbors, len(candidates))
	for i := range candidates {
		others[i] = candidates[i].Neighbors
	}
	on = map[string]map[string]int64{}
	for i, name := range constrain(pods, beside, others) {
		node := candidates[i].node
		switch {
		case name == "":
			continue
		case on[node] == nil:
			on[node] = map[string]int64{}
		}
		on[node][name]++
	}
	return pods, on
}

// constrain fills in the constraints of pods from what their templates say about pods beside them. beside has the entry
// of each kind, in the same order. others are pods on nodes that are of none of these kinds. The result has for each
// of them the name of its kind, for Place.Holds: empty if no kind is kept away by it. These names have a slash, which
// names of worker groups cannot have.
func constrain(pods []Pod, beside, others []*Neighbors) (names []string) {
	kinds, all := make([]string, len(pods), len(pods)+1), beside[:len(beside):len(beside)]
	for i := range pods {
		kinds[i] = pods[i].Name
	}
	names = make([]string, len(others))
	known := map[string]string{}
	for i, other := range others {
		text, matters := relation(beside, other)
		if !matters {
			continue
		}
		if known[text] == "" {
			known[text] = other.Namespace + "/" + strconv.Itoa(len(known))
			kinds, all = append(kinds, known[text]), append(all, other)
		}
		names[i] = known[text]
	}
	for i, own := range beside {
		pods[i].Apart = nil
		for k, other := range all {
			if own.Refuses(other) {
				pods[i].Apart = append(pods[i].Apart, kinds[k])
			}
		}
	}
	return names
}

// relation returns which of the kinds a pod keeps from its node; false if none.
func relation(own []*Neighbors, other *Neighbors) (string, bool) {
	var text []byte
	matters := false
	for _, n := range own {
		refuses := n.Refuses(other)
		matters, text = matters || refuses, strconv.AppendBool(text, refuses)
	}
	return string(text), matters
}
