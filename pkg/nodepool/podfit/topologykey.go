package podfit

// topologyKeys returns the labels that a node must have to be in a domain, by the field that names them: the
// scheduler's filters PodTopologySpread and InterPodAffinity refuse nodes without them
// (docs/reference/facts.md#rules-between-pods). Every node has its hostname.
func (p *PodShape) topologyKeys(visit func(key, field string)) {
	if p.NodeName != "" {
		return
	}
	for _, term := range p.Neighbors.Spread {
		if term.TopologyKey != HostnameLabel {
			visit(term.TopologyKey, "topologySpreadConstraints")
		}
	}
	for _, term := range p.Neighbors.Together {
		if term.TopologyKey != HostnameLabel {
			visit(term.TopologyKey, "podAffinity")
		}
	}
}

// outsideDomains appends the topology keys that the node lacks. A declared shape may leave labels of Kubernetes open.
func (p *PodShape) outsideDomains(node *Node, list []Mismatch) []Mismatch {
	p.topologyKeys(func(key, field string) {
		if _, set := node.label(key); !set && !(node.Declared && node.labelOutlook(key) < Never) {
			list = append(list, Mismatch{kind: noDomain, what: "lacks label " + key + ", the topologyKey of " + field})
		}
	})
	return list
}

// domainOutlook returns the outlook of the topology key that is hardest to come by.
func (p *PodShape) domainOutlook(node *Node) Outlook {
	worst := HoldsNow
	p.topologyKeys(func(key, _ string) {
		if _, set := node.label(key); !set {
			worst = max(worst, node.labelOutlook(key))
		}
	})
	return worst
}
