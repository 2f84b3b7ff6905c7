// Package doctor says what is wrong with RayClusters and the Kubernetes cluster under them, why it matters, and which command mends it.
// It is pure: objects that somebody else has read go in, findings come out. It refuses to read, to write and to guess: where the objects do not
// prove a fault, nothing is said.
//
// Each thing that it knows is a Check. Files hold the checks of one family, and checks.go lists the families.
package doctor

import (
	"cmp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Finding is one thing that is wrong, or that somebody should know.
type Finding struct {
	// Code is stable; the texts are for people and may change.
	Code     string             `json:"code"`
	Severity raydemand.Severity `json:"severity"`
	// Object is Kind/namespace/name, and Kind/name of what has no namespace.
	Object string `json:"object"`
	// Field is a path such as spec.workerGroupSpecs[1].replicas; empty where the fault is in no one field.
	Field string `json:"field"`
	// Seen is what stands there, Why what follows from it.
	Seen string `json:"seen"`
	Why  string `json:"why"`
	// Fix is a command for a shell that works as printed. Behind # it says what the command leaves open.
	Fix string `json:"fix"`
	// Docs is the place in the documentation that says more.
	Docs string `json:"docs"`
}

// docsPage has an anchor for each code.
const docsPage = "docs/reference/doctor.md#"

// Examine makes every check. Findings are sorted: by object, errors first, then by code and field.
func Examine(input Input) []Finding {
	x := newExam(input)
	var seen []sight
	var remedies []mended
	for _, check := range Checks() {
		check.look(x, func(s sight) {
			s.check = check
			seen = append(seen, s)
		})
	}
	byObject := map[*Object][]sight{}
	for _, s := range seen {
		byObject[s.of] = append(byObject[s.of], s)
	}
	seen = slices.DeleteFunc(seen, func(s sight) bool { return saidOfGroup(byObject[s.of], s) })
	for i := range seen {
		remedies = append(remedies, mended{seen[i].check.Code, &seen[i].fix})
	}
	compose(remedies)
	found := []Finding{}
	for _, s := range seen {
		found = append(found, s.finding())
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Object, b.Object), cmp.Compare(rank(a.Severity), rank(b.Severity)),
			strings.Compare(a.Code, b.Code), strings.Compare(a.Field, b.Field))
	})
	return slices.Compact(found)
}

func (s sight) finding() Finding {
	why := cmp.Or(s.why, s.check.Why)
	if s.more != "" {
		why += "; " + s.more
	}
	return Finding{
		Code: s.check.Code, Severity: cmp.Or(s.severity, s.check.Severity), Object: s.of.String(), Field: s.field(), Seen: short(s.seen), Why: why, Fix: s.fix.String(),
		Docs: docsPage + s.check.Code,
	}
}

func rank(severity raydemand.Severity) int {
	return slices.Index([]raydemand.Severity{raydemand.Error, raydemand.Warning, raydemand.Info}, severity)
}

// short cuts what nobody needs to see whole: an annotation alone may have 256 KiB.
func short(text string) string {
	const most = 120
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
