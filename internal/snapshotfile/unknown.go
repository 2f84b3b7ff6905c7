package snapshotfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/typo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// remarks are the keys of a snapshot file that describe it and are not part of it: what a case of
// testdata/cases expects, where it comes from, and what is to be known about it.
var remarks = []string{"assertedUpstream", "exact", "expect", "expectWithFallback", "kind", "note", "source", "topic"}

// unknownKeys are the keys of a file that are not read, each kind of place once.
type unknownKeys struct {
	kinds []unknownKey
	// index finds a kind by its path without the numbers of elements.
	index map[string]int
	// more counts those of further kinds.
	more int
}

type unknownKey struct {
	at input
	// near is the known key that was probably meant, or empty; known are all of its object.
	near  string
	known []string
	// count is how many elements of a list have it.
	count int
}

// mostUnknown is how many kinds of unknown keys are listed one by one.
const mostUnknown = 20

func (u *unknownKeys) add(at input, near string, known []string) {
	kind := withoutNumbers(at.path)
	if i, seen := u.index[kind]; seen {
		u.kinds[i].count++
		return
	}
	if len(u.kinds) == mostUnknown {
		u.more++
		return
	}
	if u.index == nil {
		u.index = map[string]int{}
	}
	u.index[kind] = len(u.kinds)
	u.kinds = append(u.kinds, unknownKey{at, near, known, 1})
}

// withoutNumbers makes nodes[].state of nodes[17].state.
func withoutNumbers(path string) string {
	var kind strings.Builder
	inside := false
	for i := range len(path) {
		c := path[i]
		if inside = c != ']' && (inside || c == '['); !inside || c == '[' {
			kind.WriteByte(c)
		}
	}
	return kind.String()
}

// findings reports each kind of unknown key once.
func (u *unknownKeys) findings(file string) []raydemand.Finding {
	var all []raydemand.Finding
	for _, k := range u.kinds {
		f := raydemand.Finding{
			Code: model.FindingKeyUnknown, Severity: raydemand.Warning, Object: file, Field: k.at.path, Seen: k.at.value(),
			Why: "no key of this name is read, so it changes nothing", Fix: "write " + k.near,
		}
		if k.count > 1 {
			f.Why += fmt.Sprintf("; %d more have it", k.count-1)
		}
		if k.near == "" {
			f.Fix = "leave it out; the keys here are " + strings.Join(k.known, ", ")
		}
		all = append(all, f)
	}
	if u.more > 0 {
		all = append(all, raydemand.Finding{Code: model.FindingKeyUnknown, Severity: raydemand.Warning, Object: file,
			Why: fmt.Sprintf("%d more keys are not read", u.more), Fix: "mend those above first"})
	}
	return all
}

// note reports the members of an object that are neither known nor remarks.
func (o *object) note(remarks []string) {
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		if slices.Contains(o.known, name) || slices.Contains(remarks, name) {
			continue
		}
		near := typo.Nearest(name, o.known)
		o.file.unknown.add(o.member(name), near, o.known)
		o.hint(name, near)
	}
}

// hint adds to the complaint about a missing member which one is likely to be it under another name.
func (o *object) hint(written, near string) {
	missing, ok := o.file.err.(*InputError)
	if ok && near != "" && missing.Value == missingValue && missing.Field == o.member(near).path {
		missing.Want += "; " + written + " is not read"
	}
}
