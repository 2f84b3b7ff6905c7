package doctor

import (
	"cmp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/typo"
)

// The codes of faults.
const (
	kindUnknown       = "kind-unknown"
	apiVersionUnknown = "api-version-unknown"
	schemaViolated    = "schema-violated"
)

// refusal is a field that an API server refuses, or drops.
type refusal struct {
	Code string
	// Field is a path, Seen the value as the manifest has it.
	Field, Seen string
	// Want says what would be right, Why what follows from the fault, and Fix what to write.
	Want, Why, Fix string
	// Group is the API group that the object should have; only of the two codes about its type.
	Group string
}

// refusalsOf returns the faults of an object.
func refusalsOf(o *Object) []refusal {
	if fault, found := ofType(o); found {
		return []refusal{fault}
	}
	if !o.Read() {
		return nil
	}
	return violations(o)
}

// ofType returns what is wrong with the kind or the apiVersion. A kind of the same name in an API that the doctor does
// not know, such as longhorn.io, is no fault.
func ofType(o *Object) (refusal, bool) {
	if o.Read() {
		return refusal{}, false
	}
	k, known := kindNamed(o.Kind)
	if !known {
		return misspeltKind(o)
	}
	version := o.Root().Get("apiVersion")
	if !k.Own && !related(o.Group(), k.Group) {
		return refusal{}, false
	}
	seen := "missing"
	if version.Has() {
		seen = version.String()
	}
	return refusal{Code: apiVersionUnknown, Field: "apiVersion", Seen: seen, Group: k.Group,
		Want: strings.Join(k.APIVersions(), " or "), Fix: "write apiVersion: " + k.APIVersion()}, true
}

// misspeltKind reports a kind that resembles a known one. In another API it may be a kind of its own, unless it begins
// as one of Ray's or Heliostat's does.
func misspeltKind(o *Object) (refusal, bool) {
	k, found := kindNamed(typo.Slip(o.Kind, kindNames()))
	const begins = 3
	own := k.Own && strings.EqualFold(o.Kind[:min(begins, len(o.Kind))], k.Name[:begins])
	if found && (own || !o.Root().Has("apiVersion") || related(o.Group(), k.Group)) {
		return refusal{Code: kindUnknown, Field: "kind", Seen: o.Kind, Want: k.Name, Fix: "write kind: " + k.Name,
			Group: k.Group}, true
	}
	ours, _ := kindNamed("CapacityPolicy")
	if o.Group() == ours.Group {
		const want = "CapacityPolicy or ResourceRequest"
		return refusal{Code: kindUnknown, Field: "kind", Seen: o.Kind, Want: want, Fix: "write kind: " + want,
			Group: ours.Group}, true
	}
	return refusal{}, false
}

// related reports whether a group is the known one or a misspelling of it, or if both are groups of Kubernetes itself.
// No other project may use a group without a dot.
func related(group, known string) bool {
	const most = 2
	builtin := func(g string) bool { return !strings.Contains(g, ".") || strings.HasSuffix(g, ".k8s.io") }
	return group == known || builtin(group) && builtin(known) ||
		len(known) > 5 && len(group) < 2*len(known) && typo.Distance(group, known) <= most
}

// Skipped counts the objects of the input that no check examines and that have no fault, by kind. A kind of the same
// name as one that is examined has its API group behind it, as kubectl writes it: Node.longhorn.io.
func Skipped(input Input) map[string]int {
	counts := map[string]int{}
	for i := range input.Objects {
		o := &input.Objects[i]
		if _, wrong := ofType(o); o.Examined() || wrong {
			continue
		}
		name := o.Kind
		if slices.Contains(kindNames(), o.Kind) {
			name += "." + o.Group()
		}
		counts[name]++
	}
	return counts
}

// refused reports what an API server refuses in a manifest under the code of the check, whatever Ray is to do with it:
// a kind or an apiVersion that it does not serve, and what breaks the schema of Heliostat's own kinds. An API server
// has accepted its own objects.
func refused(x *inventory, code string, report reporter) {
	if x.Input.Stored {
		return
	}
	for i := range x.Input.Objects {
		o := &x.Input.Objects[i]
		for _, f := range refusalsOf(o) {
			if f.Code != code || alreadyReported(o, f.Field) {
				continue
			}
			found := occurrence{Object: o, Field: f.Field, Seen: f.Seen, Why: f.Why,
				More: "want " + fieldpath.Excerpt(f.Want, 400), Fix: edit(o, f.Fix)}
			if f.Code != schemaViolated {
				found.Fix = run("kubectl api-resources --api-group=" + cmp.Or(f.Group, "''")).Hint(f.Fix)
			}
			if o.Place != "" {
				found.More += "; the object is in " + o.Place
			}
			report(found)
		}
	}
}

// alreadyReported reports whether capacity-policy-unreadable or object-unreadable is about the same field.
func alreadyReported(o *Object, field string) bool {
	return o.PolicyFault != nil && o.PolicyFault.Field == field ||
		slices.ContainsFunc(o.Unreadable, func(text string) bool { return strings.HasPrefix(text, field+": ") })
}
