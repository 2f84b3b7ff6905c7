package snapshotfile

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Limits of one change. The time of planning grows with shapes times groups, and everyone who can see a cluster can ask
// for a plan of a change. api/openapi.yaml repeats the limits.
const (
	MostWhatIfGroups = 100
	MostWhatIfShapes = 500
	MostWhatIfGangs  = 100
	// MostWhatIfNames bounds the resources of a bundle and the labels of a selector.
	MostWhatIfNames = 100
	// MostWhatIfName bounds the name of a group, in characters.
	MostWhatIfName = 253
)

// WhatIf reads changes of a snapshot, a JSON object, and returns the changed snapshot; s itself does not change. The
// keys are those of a snapshot. Groups change by name: a group without a change stays, a new name adds a group, and
// "remove": true removes one. pendingRequests, pendingGangRequests and requestResources are added; maxWorkers
// replaces the old one. Errors are *InputErrors with name as the file, and an unknown key is an error.
func WhatIf(s model.Snapshot, text []byte, name string) (model.Snapshot, error) {
	if err := checkSyntax(text, name); err != nil {
		return s, err
	}
	in, doc := read(bytes.TrimSpace(text))
	in.checkWhatIf()
	field, done := in.fields()
	field("groups").atMost(MostWhatIfGroups)
	field("pendingRequests").atMost(MostWhatIfShapes)
	field("pendingGangRequests").atMost(MostWhatIfGangs)
	field("requestResources").atMost(MostWhatIfShapes)
	if groups := field("groups"); !groups.Absent() {
		s.Groups = groups.changed(s.Groups)
	}
	s.Requests = slices.Concat(s.Requests, field("pendingRequests").requests())
	s.Gangs = slices.Concat(s.Gangs, field("pendingGangRequests").gangsBeside(s.Gangs))
	s.Constraint = slices.Concat(s.Constraint, field("requestResources").requests())
	if most := field("maxWorkers"); !most.Absent() {
		s.MaxWorkers = most.optionalInt(0, math.MaxInt32)
	}
	done()
	return s, strictError(doc, name)
}

// checkWhatIf refuses null, and objects with very many names. In a snapshot null means unknown; in a change it could
// mean no change or no value. Parts that may be copied from a snapshot, slice, pools and nodeFit, may have both.
func (in input) checkWhatIf() {
	switch {
	case string(in.Raw()) == "null":
		in.Fail("a value, or remove the key")
	case in.IsList():
		for _, each := range in.list() {
			each.checkWhatIf()
		}
	case in.IsObject():
		members := in.Members()
		if n := members.Len(); n > MostWhatIfNames {
			in.Fail(fmt.Sprintf("at most %d names, not %d", MostWhatIfNames, n))
		}
		inGroup := strings.HasPrefix(in.Path().String(), "groups[")
		for _, name := range members.Names() {
			if !inGroup || name != "slice" && name != "pools" && name != "nodeFit" {
				input{members.Member(name)}.checkWhatIf()
			}
		}
	}
}

// atMost refuses a longer list.
func (in input) atMost(most int) {
	if n := len(in.list()); n > most {
		in.Fail(fmt.Sprintf("at most %d elements, not %d", most, n))
	}
}

// gangsBeside reads gangs that are added to others. Their ids must differ.
func (in input) gangsBeside(there []raydemand.Gang) []raydemand.Gang {
	gangs := in.gangs()
	for i, each := range in.list() {
		sameID := func(g raydemand.Gang) bool { return g.ID == gangs[i].ID }
		if gangs[i].ID != "" && slices.ContainsFunc(there, sameID) {
			each.Members().Member("id").Fail("a unique id, or none: a gang of the snapshot has this one")
		}
	}
	return gangs
}

// changed reads changes of groups, and returns the changed groups.
func (in input) changed(groups []model.Group) []model.Group {
	groups = slices.Clone(groups)
	seen := map[string]int{}
	for i, each := range in.list() {
		pick, done := each.fields()
		field := picker(pick)
		name := field("name").NonEmpty("the worker group's name")
		if utf8.RuneCountInString(name) > MostWhatIfName {
			field("name").Fail(fmt.Sprintf("at most %d characters", MostWhatIfName))
		}
		field("name").unique(seen, name, i)
		at := slices.IndexFunc(groups, func(g model.Group) bool { return g.Name == name })
		switch {
		case field("remove").Flag():
			if at < 0 {
				field("name").Fail(phrase.OneOf(groupNames(groups)))
				break
			}
			groups = slices.Delete(groups, at, at+1)
		case at < 0:
			groups = append(groups, field.newGroup(name))
		default:
			field.change(&groups[at])
		}
		if !in.Failed() {
			done()
		}
	}
	return groups
}

func groupNames(groups []model.Group) []string {
	names := make([]string, len(groups))
	for i := range groups {
		names[i] = groups[i].Name
	}
	slices.Sort(names)
	return names
}

// newGroup reads a group without pods. Absent fields have the same defaults as in a snapshot.
func (field picker) newGroup(name string) model.Group {
	g := model.Group{Name: name, Max: math.MaxInt32, NumOfHosts: 1, Replicas: new(int)}
	if field("resources").Absent() {
		const want = `the resources of one pod of the new group %q, such as {"CPU": 8, "GPU": 1}`
		field("resources").Fail(fmt.Sprintf(want, name))
	}
	field.change(&g)
	return g
}

// picker picks the members of an object.
type picker func(name string) input

// change sets the fields that are there.
func (field picker) change(g *model.Group) {
	set := func(name string, read func(input)) {
		if in := field(name); !in.Absent() {
			read(in)
		}
	}
	set("resources", func(in input) { g.Resources = in.capacity() })
	set("labels", func(in input) { g.Labels = in.labels() })
	set("minReplicas", func(in input) { g.Min = int(in.Count(0, math.MaxInt32, 0)) })
	set("maxReplicas", func(in input) { g.Max = int(in.Count(0, math.MaxInt32, 0)) })
	set("numOfHosts", func(in input) { g.NumOfHosts = int(in.Count(1, mostHosts, 1)) })
	set("idleTimeoutSeconds", func(in input) { g.IdleTimeoutSeconds = in.Number(mostSeconds) })
	set("priority", func(in input) { g.Priority = int(in.Count(math.MinInt32, math.MaxInt32, 0)) })
	set("price", func(in input) { g.Price = in.Number(1e9) })
	set("slice", func(in input) { g.Slice = in.slice() })
	// Pools that are given replace what the nodes show.
	set("pools", func(in input) { g.Pools, g.Pod = in.groupPools(), nil })
	set("nodeFit", func(in input) { g.NodeFit = in.nodeFit() })
	// A group that is not closed does not cool down either.
	set("closed", func(in input) {
		if g.Closed = in.Text(); g.Closed == "" {
			g.CoolingSeconds = 0
		}
	})
}
