package binpack_test

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/binpack"
)

// inOrder reports whether pods of these kinds can be placed one after the other, each where the filters for resources,
// inter-pod affinity and topology spread allow it at that time.
func inOrder(nodes []machine, pods []binpack.Pod, order []int) bool {
	if len(order) == 0 {
		return true
	}
	pod := &pods[order[0]]
	for i := range nodes {
		m := &nodes[i]
		if !slices.Contains(m.place.Accepts, pod.Name) || !apartAllows(nodes, pods, pod, m) ||
			!togetherAllows(nodes, pod, m) || !spreadAllows(nodes, pod, m) || !m.take(pod, 1) {
			continue
		}
		m.holds[pod.Name]++
		done := inOrder(nodes, pods, order[1:])
		m.holds[pod.Name]--
		m.take(pod, -1)
		if done {
			return true
		}
	}
	return false
}

// domain returns a node's value of a key. known is false for a new node whose label is not known.
func (m *machine) domain(key string) (value string, set, known bool) {
	if key == binpack.Hostname {
		return m.name, true, true
	}
	value, set = m.place.Domains[key]
	return value, set, set || !m.place.New
}

// count adds up pods of these names in the domain of a node.
func count(nodes []machine, m *machine, key string, names []string) (n int64) {
	value, _, _ := m.domain(key)
	for i := range nodes {
		if other, set, _ := nodes[i].domain(key); set && other == value {
			n += nodes[i].counted(names)
		}
	}
	return n
}

func (m *machine) counted(names []string) (n int64) {
	for _, name := range names {
		n += m.holds[name]
	}
	return n
}

func apartAllows(nodes []machine, pods []binpack.Pod, pod *binpack.Pod, m *machine) bool {
	for i := range pods {
		for _, term := range pods[i].Apart {
			if _, set, _ := m.domain(term.TopologyKey); !set {
				continue
			}
			if &pods[i] == pod && count(nodes, m, term.TopologyKey, term.Pods) > 0 {
				return false
			}
			if slices.Contains(term.Pods, pod.Name) && count(nodes, m, term.TopologyKey, []string{pods[i].Name}) > 0 {
				return false
			}
		}
	}
	return true
}

func togetherAllows(nodes []machine, pod *binpack.Pod, m *machine) bool {
	if len(pod.Together) == 0 {
		return true
	}
	matching := pod.Together[0].Pods
	for _, term := range pod.Together {
		matching = slices.DeleteFunc(slices.Clone(matching), func(n string) bool { return !slices.Contains(term.Pods, n) })
	}
	var anywhere int64
	for i := range nodes {
		anywhere += nodes[i].counted(matching)
	}
	for _, term := range pod.Together {
		_, set, known := m.domain(term.TopologyKey)
		switch {
		case !known:
		case !set, anywhere > 0 && count(nodes, m, term.TopologyKey, matching) == 0:
			return false
		}
	}
	return anywhere > 0 || slices.Contains(matching, pod.Name)
}

func spreadAllows(nodes []machine, pod *binpack.Pod, m *machine) bool {
	for _, rule := range pod.Spread {
		_, set, known := m.domain(rule.TopologyKey)
		if !known {
			continue
		}
		if !set {
			return false
		}
		least, domains := int64(1<<40), map[string]bool{}
		for i := range nodes {
			other := &nodes[i]
			value, set, _ := other.domain(rule.TopologyKey)
			exists := !other.place.New || other.counted([]string{"a", "b"}) > 0 || other == m
			counts := slices.Contains(other.place.Accepts, pod.Name) || slices.Contains(other.place.Counted, pod.Name)
			if set && exists && counts && hasKeys(other, pod) {
				domains[value] = true
				least = min(least, count(nodes, other, rule.TopologyKey, rule.Pods))
			}
		}
		if int64(len(domains)) < rule.MinDomains {
			least = 0
		}
		pods := count(nodes, m, rule.TopologyKey, rule.Pods)
		if slices.Contains(rule.Pods, pod.Name) {
			pods++
		}
		if pods-least > rule.MaxSkew {
			return false
		}
	}
	return true
}

func hasKeys(m *machine, pod *binpack.Pod) bool {
	return !slices.ContainsFunc(pod.Spread, func(s binpack.Spread) bool {
		_, set, known := m.domain(s.TopologyKey)
		return known && !set
	})
}
