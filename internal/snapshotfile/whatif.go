package snapshotfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Limits of one change. The time of planning grows with shapes times groups, and everyone who can see a cluster can ask
// for a plan of a change. api/openapi.yaml repeats the limits.
const (
	MostWhatIfGroups = 100
	MostWhatIfShapes = 500
	MostWhatIfGangs  = 100
	// MostWhatIfBundles bounds the bundles of all gangs, in all of their choices.
	MostWhatIfBundles = 2000
	// MostWhatIfNames bounds the different resources of the demand, and those of a group.
	MostWhatIfNames = 100
	// MostWhatIfName bounds the name of a group, in characters: reasons repeat it for each shape of demand.
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
	in, doc := fieldpath.Read(bytes.TrimSpace(text))
	refuseNull(in)
	var change struct {
		Groups json.RawMessage `json:"groups"` // by name, see changed
		raydemand.Demand
		MaxWorkers *int `json:"maxWorkers"`
	}
	members := in.Members()
	for key, most := range map[string]int{
		"groups": MostWhatIfGroups, "pendingGangRequests": MostWhatIfGangs,
		"pendingRequests": MostWhatIfShapes, "requestResources": MostWhatIfShapes,
	} {
		if list := members.Member(key); len(list.List()) > most {
			list.Fail(fmt.Sprintf("at most %d elements, not %d", most, len(list.List())))
		}
	}
	decodeFields(in, reflect.ValueOf(&change).Elem(), nil)
	s.Groups = changed(members.Member("groups"), s.Groups)
	bundles := 0
	for i, g := range change.Gangs {
		for _, choice := range g.Alternatives() {
			bundles += len(choice)
		}
		if bundles > MostWhatIfBundles {
			members.Member("pendingGangRequests").Element(i).Members().Member("bundles").
				Fail(fmt.Sprintf("at most %d bundles of all gangs, in all of their choices", MostWhatIfBundles))
		}
		sameID := func(other raydemand.Gang) bool { return other.ID == g.ID }
		if g.ID != "" && slices.ContainsFunc(s.Gangs, sameID) {
			gang := members.Member("pendingGangRequests").Element(i)
			gang.Members().Member("id").Fail("a unique id, or none: a gang of the snapshot has this one")
		}
	}
	added, names := model.Snapshot{Demand: change.Demand}, map[string]bool{}
	complete(&added)
	added.EachBundle(func(b raydemand.Bundle) {
		for name := range b {
			names[name] = true
		}
	})
	checkNames(in, len(names))
	s.Requests = slices.Concat(s.Requests, added.Requests)
	s.Gangs = slices.Concat(s.Gangs, added.Gangs)
	s.Constraint = slices.Concat(s.Constraint, added.Constraint)
	s.MaxWorkers = cmp.Or(change.MaxWorkers, s.MaxWorkers)
	return s, strictError(doc, name)
}

// refuseNull refuses null: in a snapshot it means unknown, in a change it could mean no change or no value. Parts of a
// group that may be copied from a snapshot may have it.
func refuseNull(in fieldpath.JSON) {
	switch {
	case string(in.Raw()) == "null":
		in.Fail("a value, or remove the key")
	case in.IsList():
		for _, each := range in.List() {
			refuseNull(each)
		}
	case in.IsObject():
		members, copied := in.Members(), []string{"slice", "pools", "nodeFit"}
		for _, name := range members.Names() {
			if !strings.HasPrefix(in.Path().String(), "groups[") || !slices.Contains(copied, name) {
				refuseNull(members.Member(name))
			}
		}
	}
}

func checkNames(in fieldpath.JSON, n int) {
	if n > MostWhatIfNames {
		in.Fail(fmt.Sprintf("at most %d names, not %d", MostWhatIfNames, n))
	}
}

const wantResources = `the resources of one pod of the new group %q, such as {"CPU": 8, "GPU": 1}`

// changeable are the keys of a group that a change may have, beside remove.
var changeable = []string{
	"name", "resources", "labels", "minReplicas", "maxReplicas", "numOfHosts", "idleTimeoutSeconds", "priority",
	"price", "slice", "pools", "nodeFit", "closed", "remove",
}

// changed reads changes of groups, and returns the changed groups.
func changed(in fieldpath.JSON, groups []model.Group) []model.Group {
	groups = slices.Clone(groups)
	seen := map[string]fieldpath.Path{}
	for _, each := range in.List() {
		members := each.Members()
		named := members.Member("name")
		name := named.NonEmpty("the worker group's name")
		if utf8.RuneCountInString(name) > MostWhatIfName {
			named.Fail(fmt.Sprintf("at most %d characters", MostWhatIfName))
		}
		if first, twice := seen[name]; twice {
			named.Fail(fmt.Sprintf("a unique name: %s has this one", first))
		}
		seen[name] = each.Path()
		at := slices.IndexFunc(groups, func(g model.Group) bool { return g.Name == name })
		if members.Member("remove").Flag() && at < 0 {
			named.Fail(model.OneOf(groupNames(groups)))
		}
		if at < 0 {
			if resources := members.Member("resources"); resources.Absent() {
				resources.Fail(fmt.Sprintf(wantResources, name))
			}
			added := newValue(reflect.TypeFor[model.Group]()).Interface().(model.Group)
			added.Replicas = new(int) // it has no pods
			at, groups = len(groups), append(groups, added)
		}
		change := struct {
			model.Group
			Remove bool `json:"remove"`
		}{Group: groups[at]}
		decodeFields(each, reflect.ValueOf(&change).Elem(), changeable)
		if !members.Member("pools").Absent() {
			change.Pod = nil // pools that are given replace what the nodes show
		}
		if members.Has("closed") && change.Closed == "" {
			change.CoolingSeconds = 0 // a group that is not closed does not cool down either
		}
		if members.Has("slice") {
			complete(&model.Snapshot{Groups: []model.Group{change.Group}})
		}
		checkNames(members.Member("resources"), len(change.Resources))
		groups[at] = change.Group
		if change.Remove {
			groups = slices.Delete(groups, at, at+1)
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
