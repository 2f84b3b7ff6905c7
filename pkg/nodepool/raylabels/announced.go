// Package raylabels derives what Ray announces on a pod that does not exist yet: its labels and its accelerator type.
// The sources are what the pod's template sets, and the labels and products of the nodes where the pod fits
// (docs/reference/facts.md#labels-of-a-new-worker). What the sources leave open stays open: a list of possible values,
// or any value.
//
// It must not know what demand asks for, and it must not use the network, files or clocks.
package raylabels

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Announced is what is known about one label, or about the accelerator type, of the new pods of a worker group.
type Announced struct {
	// Name is the label's key, or raydemand.AcceleratorTypePrefix for the resource accelerator_type:VALUE. The prefix
	// ends with a colon, so no label has this name.
	Name string `json:"name"`
	// Values are the possible values, sorted; empty means any.
	Values []string `json:"values,omitempty"`
	// Present: every new pod has one of Values. Certain: it is the only one.
	Present bool `json:"present,omitempty"`
	Certain bool `json:"certain,omitempty"`
	// Shown are the values on past workers of the group; the empty text stands for a worker without it.
	Shown []string `json:"shown,omitempty"`
	// Why says where the values come from, or why the value is open.
	Why string `json:"why,omitempty"`
}

// Allows reports whether the value is one of the possible ones.
func (a *Announced) Allows(value string) bool {
	return len(a.Values) == 0 || slices.Contains(a.Values, value)
}

// Source is where Ray takes the value of one of its own labels from. At most one field is set; the zero Source is a
// template that sets nothing.
type Source struct {
	// Value is the label's value.
	Value string
	// NodeLabel is the label of the Kubernetes node that the pod gets its value from.
	NodeLabel string
	// Unknown says why the value cannot be read.
	Unknown string
}

// Worker is what is known about the new workers of a group without its nodes.
type Worker struct {
	// Resources are what `ray start` announces, as far as the template shows it.
	Resources raydemand.Bundle
	// Declared are the labels that the group sets. They take precedence over all others.
	Declared map[string]string
	// Sources are those of Ray's own labels, by label.
	Sources map[string]Source
	// RayVersion is the version in the RayCluster; empty if it names none.
	RayVersion string
	Pod        *landing.PodShape
}

// Nodes are the nodes that may hold a group's pods. The zero value says that nothing is known about nodes.
type Nodes struct {
	// Places are existing nodes and declared shapes.
	Places []landing.Node
	// Rooms are all pools, and Pods those that accept the group's pods.
	Rooms []landing.Room
	Pods  []landing.Pods
}

// Of returns what is known about the labels and the accelerator type of a group's new workers, sorted by name. A label
// that no new worker has is left out.
func Of(reader sharing.Reader, w Worker, nodes Nodes) []Announced {
	places := placesOf(reader, w, nodes)
	var all []Announced
	add := func(a Announced, ok bool) {
		known := slices.ContainsFunc(all, func(other Announced) bool { return other.Name == a.Name })
		if _, declared := w.Declared[a.Name]; ok && !declared && !known {
			all = append(all, a)
		}
	}
	for _, row := range reader.TopologyLabels {
		a, ok := places.label(row.Ray, row.Node)
		a.Why = cmp.Or(a.Why, "by --topology-label")
		add(a, ok)
	}
	for _, row := range ownLabels {
		add(places.ownLabel(row, w.Sources[row.label]))
	}
	if w.Resources["TPU"] > 0 {
		places.tpuLabels(add)
	}
	for _, a := range acceleratorType(reader, w, places) {
		add(a, true)
	}
	for _, key := range places.sameNames() {
		add(places.sameName(key))
	}
	slices.SortFunc(all, func(a, b Announced) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
