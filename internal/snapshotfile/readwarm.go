package snapshotfile

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

// warm reads what a capacity policy wants free; nil if nothing.
func (in input) warm() *model.Warm {
	if in.Absent() {
		return nil
	}
	field, done := in.fields()
	defer done()
	w := &model.Warm{
		Policy: field("policy").Text(),
	}
	seen := map[string]int{}
	for i, each := range field("keep").objects() {
		if !each.Members().Member("total").Absent() {
			continue // what a forecast wanted, in snapshots of the last release
		}
		entry, name := each.warmEntry()
		name.unique(seen, entry.Name, i)
		w.Keep = append(w.Keep, entry)
	}
	return w
}

// warmEntry reads a number of free workers of a group, or of bundles for which there is room.
func (in input) warmEntry() (model.WarmEntry, input) {
	field, done := in.fields()
	defer done()
	group, resources := field("group"), field("resources")
	e := model.WarmEntry{
		Name:      field("name").NonEmpty("a name such as keepWarm[0]"),
		Group:     group.Text(),
		Resources: resources.bundle(),
		Selectors: field("labelSelectors").selectors(),
		Slice:     field("slice").sliceRequirement(),
		Count:     field("count").Count(0, capacity.MaxCount, 0),
		Schedule:  field("schedule").Text(),
	}
	switch bundled := e.Resources != nil || e.Slice != nil; {
	case e.Group == "" && !bundled:
		group.Fail("the name of a worker group, or resources or slice in its place")
	case e.Group != "" && (bundled || e.Selectors != nil):
		group.Fail("either a group, or resources, slice and labelSelectors, not both")
	case e.Group == "":
		request := e.Request()
		e.Resources = request.Sliced().Bundle
	}
	if e.Count == 0 {
		field("count").Fail("how many are free, at least 1")
	}
	return e, field("name")
}

// exportableWarm bounds the bundles of warm capacity.
func exportableWarm(w *model.Warm) *model.Warm {
	if w == nil {
		return nil
	}
	bounded := *w
	bounded.Keep = nil
	for _, e := range w.Keep {
		if e.Group == "" {
			e.Resources = exportableBundle(e.Resources, mostAmount)
		}
		bounded.Keep = append(bounded.Keep, e)
	}
	return &bounded
}
