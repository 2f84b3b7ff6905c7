package observe

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// places are the parts of a spec that decide on which nodes a group's pods run, and which labels Ray gets there.
type places struct {
	selector, labels map[string]string
	affinity         []landing.NodeTerm
	sources          map[string]landing.LabelSource
}

func placesOf(g *nodepool.WorkerGroup) places {
	return places{g.Pod.Selector, g.Labels, g.Pod.Affinity, g.LabelSources}
}

func (p places) same(other places) bool {
	return maps.Equal(p.selector, other.selector) && maps.Equal(p.labels, other.labels) &&
		maps.Equal(p.sources, other.sources) && reflect.DeepEqual(p.affinity, other.affinity)
}

// Announced returns what is known about the labels and the accelerator type of a group's new pods, with what its
// youngest worker has shown, even if that has ended since. All of it is about pods of the spec as it is now.
func (s Shapes) Announced(group string, all []landing.Announced) []landing.Announced {
	known := s[group]
	if known == nil || known.shown == nil {
		return all
	}
	all = slices.Clone(all)
	for _, name := range slices.Sorted(maps.Keys(known.labels)) {
		if !slices.ContainsFunc(all, func(a landing.Announced) bool { return a.Name == name }) &&
			!planner.OfOneNode(name) {
			all = append(all, landing.Announced{Name: name, Why: "only its workers show it"})
		}
	}
	for i := range all {
		if value, ok := known.shows(all[i].Name); ok {
			all[i].Shown = []string{value}
		}
	}
	return all
}

// shows returns the value of a label or the accelerator type on the youngest worker, "" if it has none. It reports
// false if the worker says nothing about it: a head before Ray 2.49 reports no labels.
func (s *shape) shows(name string) (value string, ok bool) {
	if name != raydemand.AcceleratorTypePrefix {
		return s.labels[name], len(s.labels) > 0
	}
	for _, resource := range s.shown.Names() {
		if value, is := strings.CutPrefix(resource, name); is {
			return value, true
		}
	}
	return "", false
}

// withoutType removes the accelerator type from a worker's resources if what the group announces decides it.
func withoutType(resources raydemand.Bundle, all []landing.Announced) raydemand.Bundle {
	if !slices.ContainsFunc(
		all,
		func(a landing.Announced) bool { return a.Name == raydemand.AcceleratorTypePrefix },
	) {
		return resources
	}
	own := raydemand.Bundle{}
	for name, amount := range resources {
		if !strings.HasPrefix(name, raydemand.AcceleratorTypePrefix) {
			own[name] = amount
		}
	}
	return own
}
