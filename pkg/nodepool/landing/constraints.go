package landing

import "strconv"

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

// constrain returns the pods of the kinds with their constraints, and by node the pods that these count: all pods on
// nodes as far as they are known, otherwise the given ones of these kinds. Only pods with anti-affinity of their own
// matter to kinds without terms.
func (s *Nodes) constrain(kinds []Kind, own OnNodes) ([]Pod, OnNodes) {
	pods, beside := make([]Pod, len(kinds)), make([]*Neighbors, len(kinds))
	candidates := s.repelling
	for i := range kinds {
		pods[i], beside[i] = kinds[i].Pod, &kinds[i].Shape.Neighbors
		if len(beside[i].Apart)+len(beside[i].Spread)+len(beside[i].HostPorts) > 0 {
			candidates = s.pods()
		}
	}
	others := make([]*Neighbors, len(candidates))
	for i := range candidates {
		others[i] = candidates[i].Neighbors
	}
	names := constrain(pods, beside, others)
	if !s.counted {
		return pods, own
	}
	on := OnNodes{}
	for i, name := range names {
		if name != "" {
			on.Add(candidates[i].node, name)
		}
	}
	return pods, on
}

// constrain fills in the constraints of pods from what their templates say about pods beside them. beside has the entry
// of each kind, in the same order. others are pods on nodes that are of none of these kinds. The result has for each of
// them the name of its kind, for Place.Holds: empty if no kind counts it or is kept away by it. These names have a
// slash, which names of worker groups cannot have.
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
		selected := func(selects func(other *Neighbors) bool) (names []string) {
			for k, other := range all {
				if selects(other) {
					names = append(names, kinds[k])
				}
			}
			return names
		}
		pods[i].Apart, pods[i].Spread = selected(own.Refuses), nil
		for _, t := range own.Spread {
			pods[i].Spread = append(pods[i].Spread, Spread{t.MaxSkew, t.MinDomains,
				selected(func(other *Neighbors) bool { return own.counts(t, other) })})
		}
	}
	return names
}

// relation returns which of the kinds a pod keeps from its node, and which of their terms count it; false if none.
func relation(own []*Neighbors, other *Neighbors) (string, bool) {
	var text []byte
	matters := false
	add := func(holds bool) {
		matters, text = matters || holds, strconv.AppendBool(text, holds)
	}
	for _, n := range own {
		add(n.Refuses(other))
		for _, t := range n.Spread {
			add(n.counts(t, other))
		}
	}
	return string(text), matters
}
