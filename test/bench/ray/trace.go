package main

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner"
)

// finding is a difference with the explanations that make it disappear; none where nothing known does.
type finding struct {
	difference
	causes []string
}

// trace compares the plans for a snapshot and looks for the cause of each difference that is not for Heliostat.
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

// causes finds what explains that plans differ in an aspect. When no cause alone does, causes are taken away one after
// the other until the difference is gone; those that it is also gone without are not named.
func (d duel) causes(s planner.Snapshot, of aspect) ([]string, error) {
	for _, e := range explanations {
		gone, err := d.goneWithout(s, of, e.name)
		if err != nil {
			return nil, err
		}
		if gone {
			return []string{e.name}, nil
		}
	}
	var names []string
	for _, e := range explanations {
		names = append(names, e.name)
	}
	gone, err := d.goneWithout(s, of, names...)
	if err != nil || !gone {
		return nil, err
	}
	for _, e := range explanations {
		fewer := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == e.name })
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

// goneWithout reports whether plans do not differ in an aspect once causes are taken away. A cause that is not there is
// no cause.
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
	return !slices.ContainsFunc(found, func(other difference) bool { return other.aspect == of || other.aspect == raised }), nil
}
