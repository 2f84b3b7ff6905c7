package landing_test

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// inOrder reports whether pods of these kinds can be placed one after the other, each where the filters for resources,
// anti-affinity and topology spread over nodes allow it at that time.
func inOrder(nodes []machine, pods []landing.Pod, order []int) bool {
	if len(order) == 0 {
		return true
	}
	pod := &pods[order[0]]
	for i := range nodes {
		m := &nodes[i]
		if !slices.Contains(m.place.Accepts, pod.Name) || !apartAllows(pods, pod, m) || !spreadAllows(nodes, pod, m) ||
			!m.take(pod, 1) {
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

func (m *machine) counted(names []string) (n int64) {
	for _, name := range names {
		n += m.holds[name]
	}
	return n
}

func apartAllows(pods []landing.Pod, pod *landing.Pod, m *machine) bool {
	for i := range pods {
		if &pods[i] == pod && m.counted(pod.Apart) > 0 {
			return false
		}
		if slices.Contains(pods[i].Apart, pod.Name) && m.counted([]string{pods[i].Name}) > 0 {
			return false
		}
	}
	return true
}

func spreadAllows(nodes []machine, pod *landing.Pod, m *machine) bool {
	for _, rule := range pod.Spread {
		least, domains := int64(1<<40), int64(0)
		for i := range nodes {
			other := &nodes[i]
			exists := !other.place.New || other.counted([]string{"a", "b"}) > 0 || other == m
			counts := slices.Contains(other.place.Accepts, pod.Name) || slices.Contains(other.place.Counted, pod.Name)
			if exists && counts {
				domains++
				least = min(least, other.counted(rule.Pods))
			}
		}
		if domains < rule.MinDomains {
			least = 0
		}
		pods := m.counted(rule.Pods)
		if slices.Contains(rule.Pods, pod.Name) {
			pods++
		}
		if pods-least > rule.MaxSkew {
			return false
		}
	}
	return true
}
