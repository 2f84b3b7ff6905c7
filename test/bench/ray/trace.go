package main

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner"
)

// finding is a difference with the explanations that make it disappear; none if no known cause does.
type finding struct {
	difference
	causes []string
}

// trace compares the plans for a snapshot and finds the cause of each difference that is not in favor of Heliostat.
func (d duel) trace(s planner.Snapshot) ([]finding, error) {
	found, err := d.compare(view{ray: s, us: s})
	if err != nil {
		return nil, err
	}
	var findings []finding
	for _, difference := range found {
		if difference.aspect.better() {
			findings = append(findings, finding{difference, nil})
			continue
		}
		causes, err := d.causes(s, difference.aspect)
		if err != nil {
			return nil, err
		}
		findings = append(findings, finding{difference, causes})
	}
	return findings, nil
}

// causes finds what explains that plans differ in an aspect: one cause, else two together, else as few as possible.
func (d duel) causes(s planner.Snapshot, of aspect) ([]string, error) {
	var all []string
	for _, e := range explanations {
		if len(e.of) == 0 || slices.Contains(e.of, of) {
			all = append(all, e.name)
		}
	}
	for i := range all {
		if gone, err := d.goneWithout(s, of, all[i]); gone || err != nil {
			return []string{all[i]}, err
		}
	}
	for i := range all {
		for k := range i {
			if gone, err := d.goneWithout(s, of, all[k], all[i]); gone || err != nil {
				return []string{all[k], all[i]}, err
			}
		}
	}
	if gone, err := d.goneWithout(s, of, all...); !gone || err != nil {
		return nil, err
	}
	return d.fewest(s, of, all)
}

// fewest drops the causes that are not needed to make a difference disappear.
func (d duel) fewest(s planner.Snapshot, of aspect, names []string) ([]string, error) {
	for _, drop := range slices.Clone(names) {
		fewer := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == drop })
		gone, err := d.goneWithout(s, of, fewer...)
		if err != nil {
			return nil, err
		}
		if gone {
			names = fewer
		}
	}
	return names, nil
}

// goneWithout reports whether plans no longer differ in an aspect without some causes. A cause that the snapshot does
// not have is not a cause.
func (d duel) goneWithout(s planner.Snapshot, of aspect, names ...string) (bool, error) {
	v := view{ray: s, us: s}
	present := false
	for _, e := range explanations {
		if !slices.Contains(names, e.name) {
			continue
		}
		present = e.without(&v, d) || present
	}
	if !present {
		return false, nil
	}
	found, err := d.compare(v)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(
		found,
		func(other difference) bool { return other.aspect == of || other.aspect == raised },
	), nil
}
