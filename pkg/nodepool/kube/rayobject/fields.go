package rayobject

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/kube/finding"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of the findings of this package. They are stable; the texts beside them are for people.
const (
	// FieldUnreadable: a field has another type than the CRD says.
	FieldUnreadable = "field-unreadable"
	// FieldOutOfRange: a number does not fit into 32 bits, so the operator cannot decode the object.
	FieldOutOfRange = "field-out-of-range"
)

// Fields reads one JSON object without ever failing: an absent field is the zero value, and one of a wrong type is the
// zero value and a finding.
type Fields struct {
	Values map[string]any
	path   string
	Report *finding.List
}

func (f Fields) at(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

func (f Fields) Has(name string) bool { return f.Values[name] != nil }

func (f Fields) Object(name string) Fields {
	child := Fields{path: f.at(name), Report: f.Report}
	child.Values = as[map[string]any](f, name, "an object")
	return child
}

// Objects reads a list of objects. An entry of another type keeps its place, as an empty object with a finding.
func (f Fields) Objects(name string) []Fields {
	entries := as[[]any](f, name, "a list")
	list := make([]Fields, len(entries))
	for i, entry := range entries {
		list[i] = Fields{path: fmt.Sprintf("%s[%d]", f.at(name), i), Report: f.Report}
		values, ok := entry.(map[string]any)
		if !ok {
			f.unreadable(list[i].path, entry, "an object")
		}
		list[i].Values = values
	}
	return list
}

func (f Fields) Text(name string) string { return as[string](f, name, "a string") }

func (f Fields) flag(name string) bool { return as[bool](f, name, "true or false") }

// Texts reads a map of strings.
func (f Fields) Texts(name string) map[string]string {
	values := as[map[string]any](f, name, "an object")
	if len(values) == 0 {
		return nil
	}
	texts := make(map[string]string, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text, ok := values[key].(string)
		if !ok {
			f.unreadable(f.at(name)+"."+key, values[key], "a string")
			continue
		}
		texts[key] = text
	}
	return texts
}

// list reads a list of strings.
func (f Fields) list(name string) []string {
	entries := as[[]any](f, name, "a list")
	texts := make([]string, 0, len(entries))
	for i, entry := range entries {
		text, ok := entry.(string)
		if !ok {
			f.unreadable(fmt.Sprintf("%s[%d]", f.at(name), i), entry, "a string")
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

// Int32 reads a 32-bit number, or absent.
func (f Fields) Int32(name string, absent int) int {
	if !f.Has(name) {
		return absent
	}
	n, whole := wholeNumber(f.Values[name])
	if !whole {
		f.unreadable(f.at(name), f.Values[name], "a whole number")
		return absent
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		f.Report.Unreadable = true
		f.Report.Add(raydemand.Error, FieldOutOfRange, f.at(name), fmt.Sprint(f.Values[name]),
			"the KubeRay operator cannot decode this object, and its list then fails for the RayClusters of all namespaces",
			"set it to a number between -2147483648 and 2147483647")
		return absent
	}
	return int(n)
}

// Int64 reads a number of up to 64 bits, or 0.
func (f Fields) Int64(name string) int64 {
	if !f.Has(name) {
		return 0
	}
	n, whole := wholeNumber(f.Values[name])
	if !whole {
		f.unreadable(f.at(name), f.Values[name], "a whole number")
	}
	return n
}

func wholeNumber(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		// Numbers beyond 64 bits arrive as floats; converting them is not defined, so they are pinned.
		if n != math.Trunc(n) {
			return 0, false
		}
		if math.Abs(n) >= 1<<62 {
			return int64(math.Copysign(1<<62, n)), true
		}
		return int64(n), true
	}
	return 0, false
}

// as returns the field as T; the zero value when it is absent, and also, with a finding, when it is something else.
func as[T any](f Fields, name, want string) T {
	value, ok := f.Values[name].(T)
	if !ok && f.Has(name) {
		f.unreadable(f.at(name), f.Values[name], want)
	}
	return value
}

func (f Fields) unreadable(path string, value any, want string) {
	f.Report.Unreadable = true
	f.Report.Add(raydemand.Error, FieldUnreadable, path, fmt.Sprint(value), "it is not "+want+", so the operator cannot decode the object", "make it "+want)
}
