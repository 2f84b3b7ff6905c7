package fieldpath

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// JSON is a value in a JSON text, perhaps absent. It is decoded when it is read, one level at a time, so that what
// nobody reads costs nothing. The last fault that a Document takes ends its reading: after it, all values read as zero.
type JSON struct {
	raw json.RawMessage
	at  Path
	doc *Document
}

// Document is a JSON text that is being read. It holds the first faults, and the members of unknown names.
type Document struct {
	faults  []Fault
	most    int
	unknown []Unknown
	// kinds are the kinds of the paths of unknown members; more counts the members beyond those that are held.
	kinds map[string]bool
	more  int
}

// Read returns the value of a text that is known to be JSON, and the document that takes its first fault.
func Read(text []byte) (JSON, *Document) { return ReadAll(text, 1) }

// ReadAll returns the value of a text that is known to be JSON, and the document that takes so many faults.
func ReadAll(text []byte, most int) (JSON, *Document) {
	doc := &Document{most: most}
	return JSON{raw: text, doc: doc}, doc
}

// Faults returns the faults in the order in which they were found.
func (d *Document) Faults() []Fault { return d.faults }

// Fault returns the first fault, or nil. If a member is missing that an unknown one beside it probably means, the fault
// says so.
func (d *Document) Fault() *Fault {
	if len(d.faults) == 0 {
		return nil
	}
	f := d.faults[0]
	if f.Value != Missing {
		return &f
	}
	for _, u := range d.unknown {
		if u.Near == f.Path.LastKey() && u.Path.Parent().String() == f.Path.Parent().String() {
			f.Want += "; " + u.Path.LastKey() + " is unknown"
			break
		}
	}
	return &f
}

// Fail reports a fault; the first ones count.
func (d *Document) Fail(f Fault) {
	if len(d.faults) < d.most {
		d.faults = append(d.faults, f)
	}
}

// MostMembers bounds the members of a list or an object. Kubernetes clusters end at some ten thousand nodes, and a text
// of 64 MiB could hold twenty million empty objects, which take a hundred times the memory.
const MostMembers = 100_000

// mostOfText bounds in bytes what a Fault shows of a value.
const mostOfText = 60

// Raw returns the text of the value, and nothing if it is absent.
func (j JSON) Raw() json.RawMessage { return j.raw }

// Path returns where the value is, or would be.
func (j JSON) Path() Path { return j.at }

// Failed reports whether the document takes no more faults, which ends its reading.
func (j JSON) Failed() bool { return len(j.doc.faults) >= j.doc.most }

// Absent reports whether there is no value, or null.
func (j JSON) Absent() bool { return len(j.raw) == 0 || string(j.raw) == "null" }

// IsObject reports whether the value begins as an object does, and IsList whether as a list.
func (j JSON) IsObject() bool { return len(j.raw) > 0 && j.raw[0] == '{' }

// IsList reports whether the value begins as a list does.
func (j JSON) IsList() bool { return len(j.raw) > 0 && j.raw[0] == '[' }

// Fail reports that the value is not what is wanted.
func (j JSON) Fail(want string) {
	if !j.Failed() {
		j.doc.Fail(Fault{Path: j.at, Value: j.excerpt(), Want: want})
	}
}

// FailBelow reports that a field below the value, named by its keys with dots between them, is not what is wanted. An
// empty field is the value itself.
func (j JSON) FailBelow(field, value, want string) {
	path := j.at
	if field != "" {
		path = path.Key(strings.Split(field, ".")...)
	}
	j.doc.Fail(Fault{Path: path, Value: value, Want: want})
}

// excerpt writes the beginning of the value in one line.
func (j JSON) excerpt() string {
	if len(j.raw) == 0 {
		return Missing
	}
	var line bytes.Buffer
	if len(j.raw) > 64*mostOfText || json.Compact(&line, j.raw) != nil {
		line.Reset()
		line.Write(j.raw[:min(len(j.raw), 2*mostOfText)])
	}
	return Excerpt(line.String(), mostOfText)
}

// Into decodes the value. It returns false if the value is absent, if it is not what is wanted, or if the document
// takes no more faults.
func (j JSON) Into(target any, want string) bool {
	if j.Absent() || j.Failed() {
		return false
	}
	if members(j.raw) > MostMembers {
		j.Fail(fmt.Sprintf("at most %d members", MostMembers))
		return false
	}
	if err := json.Unmarshal(j.raw, target); err != nil {
		j.Fail(want)
		return false
	}
	return true
}

// members counts the members of a list or an object without decoding them. The text is known to be JSON.
func members(raw []byte) int {
	if len(raw) <= 2*MostMembers {
		return 0 // too short to have too many: each takes two bytes
	}
	count, depth, quoted := 1, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			count++
		}
	}
	return count
}

// List returns the elements of a list.
func (j JSON) List() []JSON {
	var elements []json.RawMessage
	j.Into(&elements, "a list […]")
	list, steps := make([]JSON, len(elements)), make([]step, len(elements))
	for i, raw := range elements {
		steps[i] = step{up: j.at.last, index: i, isIndex: true}
		list[i] = JSON{raw: raw, at: Path{&steps[i]}, doc: j.doc}
	}
	return list
}

// Element returns an element of a list, also after an error; one that the list does not have is absent.
func (j JSON) Element(i int) JSON {
	var elements []json.RawMessage
	_ = json.Unmarshal(j.raw, &elements) // what is no list has no elements
	element := JSON{at: Path{&step{up: j.at.last, index: i, isIndex: true}}, doc: j.doc}
	if i < len(elements) {
		element.raw = elements[i]
	}
	return element
}

// Objects returns the elements of a list, none of which may be null.
func (j JSON) Objects() []JSON {
	list := j.List()
	for _, each := range list {
		if each.Absent() {
			each.Fail("an object {…}")
		}
	}
	return list
}

// Named returns the members of an object that may have any names, sorted. It returns false if there is no object.
func (j JSON) Named(want string) ([]JSON, bool) {
	var members map[string]json.RawMessage
	if !j.Into(&members, want) {
		return nil, false
	}
	all := make([]JSON, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		all = append(all, JSON{raw: members[name], at: j.at.Key(name), doc: j.doc})
	}
	return all, true
}

// Name returns the key of a member.
func (j JSON) Name() string { return j.at.LastKey() }

// Text returns a text.
func (j JSON) Text() (s string) {
	j.Into(&s, "a string")
	return s
}

// NonEmpty returns a text that must be there.
func (j JSON) NonEmpty(want string) string {
	s := j.Text()
	if s == "" {
		j.Fail(want)
	}
	return s
}

// Flag returns a flag.
func (j JSON) Flag() (b bool) {
	j.Into(&b, "true or false")
	return b
}

// Count returns a whole number from least to most, or absent if there is none.
func (j JSON) Count(least, most, absent int64) int64 {
	if j.Absent() {
		return absent
	}
	var n int64
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	if j.Into(&n, want) && (n < least || n > most) {
		j.Fail(want)
	}
	return n
}

// Time returns a time.
func (j JSON) Time() (t time.Time) {
	j.Into(&t, "a time such as 2026-01-31T12:00:00Z")
	return t
}
