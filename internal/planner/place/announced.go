package place

import (
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// settleAnnounced decides what the plan may rely on: it adds what each new pod of the group has for certain to its
// labels and resources, and keeps the rest in open. What workers show takes precedence over what was derived.
func (g *Group) settleAnnounced(nodes []model.Node) {
	if len(g.Announces) == 0 {
		return
	}
	known := *g.Group
	g.Group = &known
	var certain []landing.Announced
	for _, a := range g.Announces {
		if g.has(a.Name) {
			continue
		}
		derived := a
		switch settle(&a, g.shownBy(nodes, a.Name)) {
		case present:
			certain = append(certain, a)
			if len(derived.Values) == 0 {
				derived.Shown = a.Shown
				g.open = append(g.open, derived) // other pods may run on other nodes
			}
		case open:
			g.open = append(g.open, a)
		}
	}
	known.Announces = certain
	_, known.Labels = g.withAnnounced(known.Resources, known.Labels)
}

// The states of what may be announced.
type certainty int

const (
	absent certainty = iota
	open
	present
)

// settle compares what was derived with what workers show: Shown are workers of the spec as it is now, living ones may
// be older. Workers decide what the derivation left open, but not which one of several values the next pod has. What is
// certain stays so unless a worker of this spec has something else, or all living ones have nothing.
func settle(a *landing.Announced, living []string) certainty {
	if a.Certain {
		value := a.Values[0]
		if len(a.Shown) == 0 && (!slices.Contains(living, "") || slices.Contains(living, value)) ||
			slices.Contains(a.Shown, value) {
			return present
		}
		a.Present, a.Certain = false, false
		a.Why = "its workers differ from what follows from their nodes: " + a.Why
		a.Values = sorted(slices.DeleteFunc(slices.Concat(a.Values, a.Shown), func(v string) bool { return v == "" }))
		return open
	}
	a.Shown = sorted(slices.Concat(a.Shown, living))
	switch {
	case len(a.Shown) != 1 || len(a.Values) > 1:
		return open
	case a.Shown[0] == "":
		return absent
	}
	a.Values = a.Shown
	return present
}

func sorted(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}

// has reports whether the group sets a label or an accelerator type itself.
func (g *Group) has(name string) bool {
	if name != raydemand.AcceleratorTypePrefix {
		_, declared := g.Labels[name]
		return declared
	}
	return typeOf(g.Resources) != ""
}

// typeOf returns the accelerator type in the resources of a node, or "".
func typeOf(resources raydemand.Bundle) string {
	for _, name := range resources.Names() {
		if value, is := strings.CutPrefix(name, raydemand.AcceleratorTypePrefix); is && resources[name] > 0 {
			return value
		}
	}
	return ""
}

// shownBy returns the values of a label or the accelerator type on the group's living workers, "" for one without it. A
// worker whose labels are unknown shows nothing.
func (g *Group) shownBy(nodes []model.Node, name string) (shown []string) {
	for i := range nodes {
		n := &nodes[i]
		if n.Group != g.Name || n.State != model.Running && n.State != model.Idle {
			continue
		}
		if name == raydemand.AcceleratorTypePrefix {
			if value := typeOf(n.Total); value != "" {
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

// withAnnounced adds to the resources and labels of a pod that has not joined what it announces for certain.
func (g *Group) withAnnounced(
	resources raydemand.Bundle,
	labels map[string]string,
) (raydemand.Bundle, map[string]string) {
	for _, a := range g.Announces {
		switch {
		case a.Name != raydemand.AcceleratorTypePrefix:
			if _, has := labels[a.Name]; !has {
				labels = maps.Clone(labels)
				if labels == nil {
					labels = map[string]string{}
				}
				labels[a.Name] = a.Values[0]
			}
		case typeOf(resources) == "":
			resources = resources.Clone()
			resources[a.Name+a.Values[0]] = raydemand.One
		}
	}
	return resources, labels
}

// withOpen adds to the labels of a pod that has not joined those that it may have, as unknown.
func (g *Group) withOpen(labels map[string]string) map[string]string {
	for i := range g.open {
		if _, known := labels[g.open[i].Name]; known {
			continue
		}
		labels = maps.Clone(labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[g.open[i].Name] = openValue(g.open[i].Values, g.open[i].Present)
	}
	return labels
}

// Awaited is a label or resource that a new pod must turn out to have.
type Awaited struct {
	*landing.Announced
	// Must is the condition on the value; its key is empty if any value will do.
	Must raydemand.Constraint
}

// met reports whether a value meets the condition; the empty text is a pod without the label.
func (a Awaited) met(value string) bool {
	labels := map[string]string{}
	if value != "" {
		labels[a.Must.Key] = value
	}
	return raydemand.Selector{a.Must}.Matches(labels)
}

// String returns what the pod must announce: accelerator_type:H100, or label zone=b.
func (a Awaited) String() string {
	if a.Name == raydemand.AcceleratorTypePrefix {
		return a.Name + a.Must.Expression()
	}
	return "label " + a.Name + "=" + a.Must.Expression()
}

// awaits returns what a new pod of the group must turn out to announce to serve an item that it does not serve for
// certain. It reports false if such a pod serves the item anyway, or could not serve it whatever it announces.
func (r *Fleet) awaits(g *Group, it *Item) (all []Awaited, ok bool) {
	if len(g.open) == 0 || it.Suits(g.Shape) {
		return nil, false
	}
	for _, t := range it.Need {
		if g.Shape.Total.Has(t) {
			continue
		}
		value, typed := strings.CutPrefix(r.Names[t.Resource], raydemand.AcceleratorTypePrefix)
		a := g.openName(raydemand.AcceleratorTypePrefix)
		if !typed || a == nil || !a.Allows(value) || t.Amount > raydemand.One {
			return nil, false
		}
		all = append(all, Awaited{a, raydemand.Constraint{Key: a.Name, Op: raydemand.In, Values: []string{value}}})
	}
	if it.Rank[g.Shape.Labels] != NoMatch {
		return all, len(all) > 0
	}
	if !it.Slice.Allows(r.SliceOf(g.Shape)) {
		return nil, false
	}
	for _, selector := range it.Request.Selectors {
		if labels, possible := g.mayMatch(selector); possible {
			return append(all, labels...), true
		}
	}
	return nil, false
}

func (g *Group) openName(name string) *landing.Announced {
	at := slices.IndexFunc(g.open, func(a landing.Announced) bool { return a.Name == name })
	if at < 0 {
		return nil
	}
	return &g.open[at]
}

// openLabel returns what is known about a label that a new pod may turn out to have, or nil.
func (g *Group) openLabel(key string) *landing.Announced { return g.openName(key) }

// mayMatch returns the labels that a new pod must turn out to have to match a selector.
func (g *Group) mayMatch(selector raydemand.Selector) (all []Awaited, possible bool) {
	labels := g.withOpen(g.Labels)
	for _, c := range selector {
		awaited := Awaited{g.openName(c.Key), c}
		switch {
		case FirstMatch([]raydemand.Selector{{c}}, labels) == 0:
		case awaited.Announced == nil || !awaited.mayBeMet():
			return nil, false
		default:
			all = append(all, awaited)
		}
	}
	return all, true
}

// mayBeMet reports whether one of the possible values meets the condition.
func (a Awaited) mayBeMet() bool {
	return a.Must.Op == raydemand.NotIn || slices.ContainsFunc(a.Must.Values, a.Allows)
}
