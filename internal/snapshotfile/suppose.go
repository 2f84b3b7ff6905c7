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

// What may be supposed at once. Planning takes time with shapes times groups, and everyone who can see a cluster can
// suppose; api/openapi.yaml repeats the limits.
const (
	MostSupposedGroups = 100
	MostSupposedShapes = 500
	MostSupposedGangs  = 100
	// MostSupposedNames bounds the resources of a bundle and the labels of a selector.
	MostSupposedNames = 100
	// MostSupposedName bounds the name of a group, in characters.
	MostSupposedName = 253
)

// Suppose reads what is to be different in a snapshot, a JSON object, and returns the snapshot as it would be. The keys
// are those of a snapshot: groups are changed by name (those not named stay, a new name is a new group, "remove": true
// takes one away), pendingRequests, pendingGangRequests and requestResources are added to what is there, policy and
// maxWorkers replace. Errors are *InputErrors with name in the place of the file; an unknown key is one. s itself stays
// as it is.
func Suppose(s model.Snapshot, text []byte, name string) (model.Snapshot, error) {
	if err := checkSyntax(text, name); err != nil {
		return s, err
	}
	in, doc := read(bytes.TrimSpace(text))
	in.checkSupposed()
	field, done := in.fields()
	for _, part := range []struct {
		name string
		most int
	}{{"groups", MostSupposedGroups}, {"pendingRequests", MostSupposedShapes}, {"pendingGangRequests", MostSupposedGangs}, {"requestResources", MostSupposedShapes}} {
		field(part.name).atMost(part.most)
	}
	if groups := field("groups"); !groups.Absent() {
		s.Groups = groups.changed(s.Groups)
	}
	s.Requests = slices.Concat(s.Requests, field("pendingRequests").requests())
	s.Gangs = slices.Concat(s.Gangs, field("pendingGangRequests").gangsBeside(s.Gangs))
	s.Constraint = slices.Concat(s.Constraint, field("requestResources").requests())
	if policy := field("policy"); !policy.Absent() {
		s.Policy = policy.policy()
	}
	if most := field("maxWorkers"); !most.Absent() {
		s.MaxWorkers = most.optionalInt(0, math.MaxInt32)
	}
	done()
	return s, strictError(doc, name)
}

// checkSupposed refuses what says nothing, and objects of very many names: in a snapshot null is what is not known, and
// here it could mean no change or none at all. What is taken over from a snapshot as it is may have both.
func (in input) checkSupposed() {
	switch {
	case string(in.Raw()) == "null":
		in.Fail("a value, or no such key")
	case in.IsList():
		for _, each := range in.list() {
			each.checkSupposed()
		}
	case in.IsObject():
		members := in.Members()
		if n := members.Len(); n > MostSupposedNames {
			in.Fail(fmt.Sprintf("at most %d names, there are %d", MostSupposedNames, n))
		}
		inGroup := strings.HasPrefix(in.Path().String(), "groups[")
		for _, name := range members.Names() {
			if !inGroup || name != "slice" && name != "pools" {
				input{members.Member(name)}.checkSupposed()
			}
		}
	}
}

// atMost refuses longer lists.
func (in input) atMost(most int) {
	if n := len(in.list()); n > most {
		in.Fail(fmt.Sprintf("at most %d of them, there are %d", most, n))
	}
}

// gangsBeside reads gangs none of which has the id of one that is there.
func (in input) gangsBeside(there []raydemand.Gang) []raydemand.Gang {
	gangs := in.gangs()
	for i, each := range in.list() {
		if id := gangs[i].ID; id != "" && slices.ContainsFunc(there, func(g raydemand.Gang) bool { return g.ID == id }) {
			each.Members().Member("id").Fail("an id of its own, or none: the snapshot has a gang with this one")
		}
	}
	return gangs
}

// changed reads changes of groups.
func (in input) changed(groups []model.Group) []model.Group {
	groups = slices.Clone(groups)
	seen := map[string]int{}
	for i, each := range in.list() {
		pick, done := each.fields()
		field := picker(pick)
		name := field("name").NonEmpty("the worker group's name")
		if utf8.RuneCountInString(name) > MostSupposedName {
			field("name").Fail(fmt.Sprintf("at most %d characters", MostSupposedName))
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

// newGroup is a group without pods; what is not said of it is as in a snapshot.
func (field picker) newGroup(name string) model.Group {
	g := model.Group{Name: name, Max: math.MaxInt32, NumOfHosts: 1, Replicas: new(int)}
	if field("resources").Absent() {
		field(
			"resources",
		).Fail(fmt.Sprintf("what one pod of the new group %q brings, such as {\"CPU\": 8, \"GPU\": 1}", name))
	}
	field.change(&g)
	return g
}

// picker picks members of an object.
type picker func(name string) input

// change sets what is said and leaves the rest.
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
	set("pools", func(in input) { g.Pools = in.groupPools() })
	// Whoever supposes that a group is open supposes that it does not cool down either.
	set("closed", func(in input) {
		if g.Closed = in.Text(); g.Closed == "" {
			g.CoolingSeconds = 0
		}
	})
}
