// Package refusal says what an API server refuses in the objects of a manifest, whatever Ray is to do with them: a kind
// or an apiVersion that it does not serve, and what breaks the schema of Heliostat's own kinds.
//
// The package examines one object at a time. It must not know checks or fixes, and it reads no files and no API server.
package refusal

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/internal/typo"
)

// The codes of faults.
const (
	KindUnknown       = "kind-unknown"
	APIVersionUnknown = "api-version-unknown"
	SchemaViolated    = "schema-violated"
)

// Fault is a field that an API server refuses, or drops.
type Fault struct {
	Code string
	// Field is a path, Seen the value as the manifest has it.
	Field, Seen string
	// Want says what would be right, Why what follows from the fault, and Fix what to write.
	Want, Why, Fix string
	// Group is the API group that the object should have; only of the two codes about its type.
	Group string
}

// Of returns the faults of an object.
func Of(o *inventory.Object) []Fault {
	if fault, found := ofType(o); found {
		return []Fault{fault}
	}
	if !o.Read() {
		return nil
	}
	return violations(o)
}

// ofType returns what is wrong with the kind or the apiVersion. A kind of the same name in an API that the doctor does
// not know, such as longhorn.io, is no fault.
func ofType(o *inventory.Object) (Fault, bool) {
	if o.Read() {
		return Fault{}, false
	}
	k, known := inventory.KindNamed(o.Kind)
	if !known {
		return misspeltKind(o)
	}
	version := o.Root().Get("apiVersion")
	if !k.Own && !related(o.Group(), k.Group) {
		return Fault{}, false
	}
	seen := "missing"
	if version.Has() {
		seen = version.String()
	}
	return Fault{Code: APIVersionUnknown, Field: "apiVersion", Seen: seen, Group: k.Group,
		Want: strings.Join(k.APIVersions(), " or "), Fix: "write apiVersion: " + k.APIVersion()}, true
}

// misspeltKind reports a kind that resembles a known one. In another API it may be a kind of its own, unless it begins
// as one of Ray's or Heliostat's does.
func misspeltKind(o *inventory.Object) (Fault, bool) {
	k, found := inventory.KindNamed(typo.Slip(o.Kind, inventory.Kinds()))
	const begins = 3
	own := k.Own && strings.EqualFold(o.Kind[:min(begins, len(o.Kind))], k.Name[:begins])
	if found && (own || !o.Root().Has("apiVersion") || related(o.Group(), k.Group)) {
		return Fault{Code: KindUnknown, Field: "kind", Seen: o.Kind, Want: k.Name, Fix: "write kind: " + k.Name,
			Group: k.Group}, true
	}
	ours, _ := inventory.KindNamed("CapacityPolicy")
	if o.Group() == ours.Group {
		const want = "CapacityPolicy or ResourceRequest"
		return Fault{Code: KindUnknown, Field: "kind", Seen: o.Kind, Want: want, Fix: "write kind: " + want,
			Group: ours.Group}, true
	}
	return Fault{}, false
}

// related reports whether a group is the known one or a misspelling of it, or if both are groups of Kubernetes itself.
// No other project may use a group without a dot.
func related(group, known string) bool {
	const most = 2
	builtin := func(g string) bool { return !strings.Contains(g, ".") || strings.HasSuffix(g, ".k8s.io") }
	return group == known || builtin(group) && builtin(known) ||
		len(known) > 5 && len(group) < 2*len(known) && typo.Distance(group, known) <= most
}

// Skipped counts the objects that nothing examines and that have no fault, by kind. A kind of the same name as one that
// is examined has its API group behind it, as kubectl writes it: Node.longhorn.io.
func Skipped(objects []inventory.Object) map[string]int {
	counts := map[string]int{}
	for i := range objects {
		o := &objects[i]
		if _, wrong := ofType(o); o.Examined() || wrong {
			continue
		}
		name := o.Kind
		if slices.Contains(inventory.Kinds(), o.Kind) {
			name += "." + o.Group()
		}
		counts[name]++
	}
	return counts
}
