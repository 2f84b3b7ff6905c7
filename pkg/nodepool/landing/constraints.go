package landing

import ()

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
	names := Constrain(pods, beside, others)
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
