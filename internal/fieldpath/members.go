package fieldpath

import (
	"encoding/json"
	"maps"
	"slices"
)

// Members are the members of an object in a JSON text. They remember which names were picked: those are the names that
// the object may have.
type Members struct {
	of    JSON
	raw   map[string]json.RawMessage
	known []string
}

// Members returns the members of an object, to be picked by name.
func (j JSON) Members() *Members {
	m := &Members{of: j}
	j.Into(&m.raw, "an object {…}")
	return m
}

// Len returns how many members the object has.
func (m *Members) Len() int { return len(m.raw) }

// Names returns the names of all members that the object has, sorted.
func (m *Members) Names() []string { return slices.Sorted(maps.Keys(m.raw)) }

// Pick returns the member of a name that the object may have.
func (m *Members) Pick(name string) JSON {
	if !slices.Contains(m.known, name) {
		m.known = append(m.known, name)
	}
	return m.Member(name)
}

// Know sets the names that the object may have.
func (m *Members) Know(names []string) { m.known = names }

// Has reports whether there is a member of a name.
func (m *Members) Has(name string) bool { return m.raw[name] != nil }

// Member returns a member and does not make its name known.
func (m *Members) Member(name string) JSON {
	return JSON{raw: m.raw[name], at: m.of.at.Key(name), doc: m.of.doc}
}

// Done reports the members that were not picked, except those of the ignored names. Call it after all picks.
func (m *Members) Done(ignored ...string) {
	doc := m.of.doc
	for _, name := range m.Names() {
		if slices.Contains(m.known, name) || slices.Contains(ignored, name) {
			continue
		}
		doc.addUnknown(m.Member(name), Nearest(name, m.known), m.known)
	}
}

// mostUnknown is how many kinds of unknown members a Document holds one by one.
const mostUnknown = 20

// addUnknown holds an unknown member; of elements of a list, the first one.
func (d *Document) addUnknown(at JSON, near string, known []string) {
	kind := at.at.Kind()
	if d.kinds[kind] {
		return
	}
	if len(d.unknown) == mostUnknown {
		d.more++
		return
	}
	if d.kinds == nil {
		d.kinds = map[string]bool{}
	}
	d.kinds[kind] = true
	d.unknown = append(d.unknown, Unknown{Path: at.at, Value: at.excerpt(), Near: near, Known: known})
}

// Unknown returns the unknown members, each kind of place once, and how many more there are of further kinds.
func (d *Document) Unknown() (members []Unknown, more int) { return d.unknown, d.more }

// Strict returns the first fault; without any, an unknown member is one.
func (d *Document) Strict() *Fault {
	if len(d.faults) > 0 || len(d.unknown) == 0 {
		return d.Fault()
	}
	u := d.unknown[0]
	return &Fault{Path: u.Path, Value: "unknown key", Want: u.Want()}
}
