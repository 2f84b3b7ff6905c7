package place

import (
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Topology groups label sets by their value of one label (docs/reference/facts.md#topology-of-a-placement-group).
// Values are numbered in alphabetical order.
type Topology struct {
	// Of is the number of each label set's value, or negative if the set lacks the label.
	Of     []int
	values int
}

// Domain is where a gang can be placed: nodes and groups with one value of a topology. The zero Domain is everywhere.
type Domain struct {
	*Topology
	Value int
}

func (d Domain) Admits(labels int) bool { return d.Topology == nil || d.Of[labels] == d.Value }

// numberTopologies numbers the values of each topology label of the gangs.
func (r *Fleet) numberTopologies(gangs []raydemand.Gang) {
	r.topologies = map[string]*Topology{}
	for i := range gangs {
		if label := gangs[i].TopologyLabel; label != "" && r.topologies[label] == nil {
			r.topologies[label] = r.newTopology(label)
		}
	}
}

// Topology returns the numbered values of a topology label.
func (r *Fleet) Topology(label string) *Topology { return r.topologies[label] }

func (r *Fleet) newTopology(label string) *Topology {
	var values []string
	for _, labels := range r.Sets {
		if value, ok := labels[label]; ok && !isOpen(value) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	made := &Topology{Of: make([]int, len(r.Sets)), values: len(values)}
	for set, labels := range r.Sets {
		made.Of[set] = -1
		if value, ok := labels[label]; ok && !isOpen(value) {
			made.Of[set], _ = slices.BinarySearch(values, value)
		}
	}
	return made
}

func (t *Topology) Domains(wanted func(value int) bool) (all []Domain) {
	for value := range t.values {
		if wanted(value) {
			all = append(all, Domain{t, value})
		}
	}
	return all
}
