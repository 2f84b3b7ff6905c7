package model

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// LearnLabels adds to the groups of a RayCluster the labels that their workers show and that nothing else explains, for
// example because a webhook sets them. New pods of a group have a label that all its workers agree on.
func (s *Snapshot) LearnLabels() {
	for i := range s.Groups {
		g := &s.Groups[i]
		var keys []string
		for k := range s.Nodes {
			n := &s.Nodes[k]
			if n.Group != g.Name || n.State != Running && n.State != Idle {
				continue
			}
			for key := range n.Labels {
				if _, declared := g.Labels[key]; !declared && !OfOneNode(key) && !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			g.learn(landing.Announced{Name: key, Why: "only its workers show it"})
		}
	}
}

// learn adds an announcement unless the label is known already.
func (g *Group) learn(a landing.Announced) {
	if !slices.ContainsFunc(g.Announces, func(known landing.Announced) bool { return known.Name == a.Name }) {
		g.Announces = append(slices.Clip(g.Announces), a)
	}
}

// OfOneNode reports whether a label of Ray nodes has a value of its own on every node, or on every slice of TPUs.
func OfOneNode(key string) bool {
	return key == "ray.io/node-id" || key == "ray.io/node-group" || key == landing.TPUSliceName ||
		key == landing.TPUWorkerID || strings.HasSuffix(key, "/hostname")
}
