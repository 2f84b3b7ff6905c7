package kube

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of the findings of this package. They are stable; the texts beside them are for people.
const (
	// FieldUnreadable: a field has another type than the CRD says.
	FieldUnreadable = "field-unreadable"
	// FieldOutOfRange: a number does not fit into 32 bits, so the operator cannot decode the object.
	FieldOutOfRange = "field-out-of-range"
)

// findings collects what a person should know about one RayCluster.
type findings struct {
	object string
	list   []raydemand.Finding
	// unreadable is set by what typed clients cannot decode.
	unreadable bool
}

func (f *findings) add(severity raydemand.Severity, code, field, seen, why, fix string) {
	f.list = append(f.list, raydemand.Finding{
		Code: code, Severity: severity, Object: f.object, Field: short(field), Seen: short(seen), Why: why, Fix: fix,
	})
}

// short cuts what a person need not see whole: an annotation alone may be 256 KiB.
func short(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("… (%d bytes)", len(text))
}

// mostOfACode is how many findings of one kind are told of one RayCluster.
const mostOfACode = 20

// bounded leaves out what goes on without end; the last finding of a kind says how many more there are.
func bounded(all []raydemand.Finding) []raydemand.Finding {
	told, last := map[string]int{}, map[string]int{}
	var kept []raydemand.Finding
	for _, f := range all {
		told[f.Code]++
		if told[f.Code] <= mostOfACode {
			last[f.Code] = len(kept)
			kept = append(kept, f)
		}
	}
	for code, at := range last {
		if more := told[code] - mostOfACode; more > 0 {
			kept[at].Why += fmt.Sprintf("; %d more of this kind are not listed", more)
		}
	}
	return kept
}

// errorsSince reports whether an error was added after the first mark findings.
func (f *findings) errorsSince(mark int) bool {
	return slices.ContainsFunc(f.list[mark:], func(x raydemand.Finding) bool { return x.Severity == raydemand.Error })
}

// fields reads one JSON object without ever failing: an absent field is the zero value, and one of a wrong type is the
// zero value and a finding.
type fields struct {
	values map[string]any
	path   string
	report *findings
}

func (f fields) at(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

func (f fields) has(name string) bool { return f.values[name] != nil }

func (f fields) object(name string) fields {
	child := fields{path: f.at(name), report: f.report}
	child.values = as[map[string]any](f, name, "an object")
	return child
}

// objects reads a list of objects. An entry of another type keeps its place, as an empty object with a finding.
func (f fields) objects(name string) []fields {
	entries := as[[]any](f, name, "a list")
	list := make([]fields, len(entries))
	for i, entry := range entries {
		list[i] = fields{path: fmt.Sprintf("%s[%d]", f.at(name), i), report: f.report}
		values, ok := entry.(map[string]any)
		if !ok {
			f.unreadable(list[i].path, entry, "an object")
		}
		list[i].values = values
	}
	return list
}

func (f fields) text(name string) string { return as[string](f, name, "a string") }

func (f fields) flag(name string) bool { return as[bool](f, name, "true or false") }

// texts reads a map of strings.
func (f fields) texts(name string) map[string]string {
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
func (f fields) list(name string) []string {
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

// int32 reads a 32-bit number, or absent.
func (f fields) int32(name string, absent int) int {
	if !f.has(name) {
		return absent
	}
	n, whole := wholeNumber(f.values[name])
	if !whole {
		f.unreadable(f.at(name), f.values[name], "a whole number")
		return absent
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		f.report.unreadable = true
		f.report.add(raydemand.Error, FieldOutOfRange, f.at(name), fmt.Sprint(f.values[name]),
			"the KubeRay operator cannot decode this object, and its list then fails for the RayClusters of all namespaces",
			"set it to a number between -2147483648 and 2147483647")
		return absent
	}
	return int(n)
}

// int64 reads a number of up to 64 bits, or 0.
func (f fields) int64(name string) int64 {
	if !f.has(name) {
		return 0
	}
	n, whole := wholeNumber(f.values[name])
	if !whole {
		f.unreadable(f.at(name), f.values[name], "a whole number")
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
func as[T any](f fields, name, want string) T {
	value, ok := f.values[name].(T)
	if !ok && f.has(name) {
		f.unreadable(f.at(name), f.values[name], want)
	}
	return value
}

func (f fields) unreadable(path string, value any, want string) {
	f.report.unreadable = true
	f.report.add(raydemand.Error, FieldUnreadable, path, fmt.Sprint(value), "it is not "+want+", so the operator cannot decode the object", "make it "+want)
}
