package model

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
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

// Settled returns the group with what each of its new pods has for certain in its labels and Announces, and what new
// pods may turn out to have besides. What workers show takes precedence over what was derived.
func (g *Group) Settled(nodes []Node) (known *Group, open landing.Open) {
	if len(g.Announces) == 0 {
		return g, nil
	}
	settled := *g
	settled.Announces = nil
	for _, a := range g.Announces {
		if g.has(a.Name) {
			continue
		}
		derived := a
		if a.PerReplica && !g.namesReplicas(nodes, a) {
			a.PerReplica, a.Why = false, "its workers differ from what follows from their template: "+a.Why
		}
		switch isCertain, isOpen := a.Settle(g.shownBy(nodes, a.Name)); {
		case isOpen:
			open = append(open, a)
		case isCertain:
			settled.Announces = append(settled.Announces, a)
			if len(derived.Values) == 0 {
				derived.Shown = a.Shown
				open = append(open, derived) // other pods may run on other nodes
			}
		}
	}
	_, settled.Labels = landing.AddCertain(settled.Announces, g.Resources, g.Labels)
	return &settled, open
}

// has reports whether the group sets a label or an accelerator type itself.
func (g *Group) has(name string) bool {
	if name != raydemand.AcceleratorTypePrefix {
		_, declared := g.Labels[name]
		return declared
	}
	return g.Resources.AcceleratorType() != ""
}

// shownBy returns the values of a label or the accelerator type on the group's living workers, "" for one without it. A
// worker whose labels are unknown shows nothing.
func (g *Group) shownBy(nodes []Node, name string) (shown []string) {
	for i := range nodes {
		n := &nodes[i]
		if n.Group != g.Name || n.State != Running && n.State != Idle {
			continue
		}
		if name == raydemand.AcceleratorTypePrefix {
			if value := n.Total.AcceleratorType(); value != "" {
				shown = append(shown, value)
			}
			continue
		}
		if value, has := n.Labels[name]; has || n.Labels["ray.io/node-id"] != "" {
			shown = append(shown, value)
		}
	}
	return shown
}

// namesReplicas reports whether no worker contradicts that a label has the name of the replica as its value.
func (g *Group) namesReplicas(nodes []Node, a landing.Announced) bool {
	return !slices.Contains(a.Shown, "") && !slices.ContainsFunc(nodes, func(n Node) bool {
		shown := g.shownBy([]Node{n}, a.Name)
		return len(shown) > 0 && (n.Replica == "" || shown[0] != n.Replica)
	})
}
