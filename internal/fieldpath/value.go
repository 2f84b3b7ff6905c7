package fieldpath

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// Value is a field of a decoded object, perhaps absent: a map, a list, a text, a number, a flag or nothing. Reading
// never fails. What is absent reads as the zero value, and so does what has another type. That is a Fault as well if
// the Value has a function that takes them.
//
// Reading methods take the keys of a member, or of a member of a member; without keys they read the value itself. A
// member of what is not an object is absent. No path is built before a fault needs it.
type Value struct {
	raw   any
	at    Path
	fault func(Fault)
}

// Of returns the value of a decoded object. Faults go to a function, or nowhere if it is nil.
func Of(object any, fault func(Fault)) Value { return Value{raw: object, fault: fault} }

// At returns a value that is not part of an object that was read, with a path that it should have.
func At(path Path) Value { return Value{at: path} }

// Reporting returns the value with another function for faults; nil is none.
func (v Value) Reporting(fault func(Fault)) Value {
	v.fault = fault
	return v
}

// lookup returns what is at the keys, or nil.
func (v Value) lookup(keys []string) any {
	raw := v.raw
	for _, key := range keys {
		members, _ := raw.(map[string]any)
		raw = members[key]
	}
	return raw
}

// Raw returns what was decoded.
func (v Value) Raw() any { return v.raw }

// Path returns the path of the value, or of a member that need not be there.
func (v Value) Path(keys ...string) Path { return v.at.Key(keys...) }

// Has reports whether there is a value. A value of null is absent.
func (v Value) Has(keys ...string) bool { return v.lookup(keys) != nil }

// Get returns a member, whatever its type.
func (v Value) Get(keys ...string) Value {
	return Value{raw: v.lookup(keys), at: v.at.Key(keys...), fault: v.fault}
}

// Find returns what is at a path below the value, or false if a list or an object on the path does not reach so far. A
// member that an object lacks is absent.
func (v Value) Find(path Path) (Value, bool) {
	for _, s := range path.steps() {
		if !s.isIndex {
			if _, isObject := v.raw.(map[string]any); !isObject {
				return Value{}, false
			}
			v = v.Get(s.key)
			continue
		}
		items := v.Items()
		if s.index >= len(items) {
			return Value{}, false
		}
		v = items[s.index]
	}
	return v, true
}

// Object returns a member that should be an object; if it is something else, it is an empty one.
func (v Value) Object(keys ...string) Value {
	members := as[map[string]any](v, keys, "an object")
	child := Value{at: v.at.Key(keys...), fault: v.fault}
	if members != nil {
		child.raw = members
	}
	return child
}

// Members returns the members of an object. The map belongs to the object.
func (v Value) Members(keys ...string) map[string]any {
	return as[map[string]any](v, keys, "an object")
}

// Keys returns the keys of an object, sorted.
func (v Value) Keys(keys ...string) []string {
	return slices.Sorted(maps.Keys(as[map[string]any](v, keys, "an object")))
}

// Items returns the elements of a list, whatever their types.
func (v Value) Items(keys ...string) []Value {
	list := as[[]any](v, keys, "a list")
	if len(list) == 0 {
		return nil
	}
	at := v.at.Key(keys...)
	items, steps := make([]Value, len(list)), make([]step, len(list))
	for i, raw := range list {
		steps[i] = step{up: at.last, index: i, isIndex: true}
		items[i] = Value{raw: raw, at: Path{&steps[i]}, fault: v.fault}
	}
	return items
}

// Objects returns the elements of a list of objects. An element of another type keeps its place, as an empty object.
func (v Value) Objects(keys ...string) []Value {
	items := v.Items(keys...)
	for i := range items {
		members, ok := items[i].raw.(map[string]any)
		if !ok {
			items[i].Fault("an object")
		}
		if items[i].raw = nil; members != nil {
			items[i].raw = members
		}
	}
	return items
}

// Text returns a text.
func (v Value) Text(keys ...string) string { return as[string](v, keys, "a string") }

// Flag returns a flag.
func (v Value) Flag(keys ...string) bool { return as[bool](v, keys, "true or false") }

// Texts returns an object all of whose members are texts. Members of other types are left out.
func (v Value) Texts(keys ...string) map[string]string {
	members := as[map[string]any](v, keys, "an object")
	if len(members) == 0 {
		return nil
	}
	texts := make(map[string]string, len(members))
	var wrong []string
	for key, raw := range members {
		if text, ok := raw.(string); ok {
			texts[key] = text
		} else {
			wrong = append(wrong, key)
		}
	}
	slices.Sort(wrong)
	for _, key := range wrong {
		v.report(append(slices.Clone(keys), key), members[key], "a string")
	}
	return texts
}

// TextList returns a list of texts. Elements of other types are left out.
func (v Value) TextList(keys ...string) []string {
	list := as[[]any](v, keys, "a list")
	texts := make([]string, 0, len(list))
	for i, raw := range list {
		text, ok := raw.(string)
		if !ok {
			Value{raw: raw, at: v.at.Key(keys...).Index(i), fault: v.fault}.Fault("a string")
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

// Whole returns a whole number; ok is false for anything else, and if the value is absent. A float beyond 64 bits
// becomes 1<<62, with its sign.
func (v Value) Whole(keys ...string) (n int64, ok bool) {
	raw := v.lookup(keys)
	if n, ok = whole(raw); !ok && raw != nil {
		v.report(keys, raw, "a whole number")
	}
	return n, ok
}

// Int32 returns a whole number of 32 bits; ok is false for anything else, and if the value is absent.
func (v Value) Int32(keys ...string) (n int, ok bool) {
	long, ok := v.Whole(keys...)
	if !ok {
		return 0, false
	}
	if long < math.MinInt32 || long > math.MaxInt32 {
		if v.fault != nil {
			v.fault(Fault{Path: v.at.Key(keys...), Value: fmt.Sprint(v.lookup(keys)), OutOfRange: true,
				Want: "a number between -2147483648 and 2147483647"})
		}
		return 0, false
	}
	return int(long), true
}

func whole(raw any) (int64, bool) {
	switch n := raw.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		if n != math.Trunc(n) {
			return 0, false
		}
		if math.Abs(n) >= 1<<62 { // converting a float beyond 64 bits is not defined
			return int64(math.Copysign(1<<62, n)), true
		}
		return int64(n), true
	}
	return 0, false
}

// String returns a text or a number as it is written in a manifest, an object or a list as JSON, and nothing for an
// absent value.
func (v Value) String() string {
	switch raw := v.raw.(type) {
	case nil:
		return ""
	case string:
		return raw
	case float64:
		return strconv.FormatFloat(raw, 'f', -1, 64)
	default:
		return Shown(raw)
	}
}

// Shown returns an object, a list or null as JSON, and other values as Go prints them.
func Shown(raw any) string {
	switch raw.(type) {
	case nil, map[string]any, []any:
		if text, err := json.Marshal(raw); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(raw)
}

// as returns a member as T, or the zero value, and a fault if it has another type.
func as[T any](v Value, keys []string, want string) T {
	raw := v.lookup(keys)
	value, ok := raw.(T)
	if !ok && raw != nil {
		v.report(keys, raw, want)
	}
	return value
}

// Fault reports that the value is not what was wanted.
func (v Value) Fault(want string) { v.report(nil, v.raw, want) }

// mostOfValue bounds in bytes what a Fault shows of a Value.
const mostOfValue = 100

func (v Value) report(keys []string, raw any, want string) {
	if v.fault != nil {
		v.fault(Fault{Path: v.at.Key(keys...), Value: Excerpt(Quoted(raw), mostOfValue), Want: want})
	}
}

// Quoted is Shown with quotes around a text: "60" is not 60, and a fault is about the difference.
func Quoted(raw any) string {
	if text, isText := raw.(string); isText {
		return strconv.Quote(text)
	}
	return Shown(raw)
}

// WantType says in words what a field of a Go type takes in JSON.
func WantType(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Pointer:
		return WantType(of.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int32:
		return "a whole number of 32 bits without quotes"
	case reflect.Int, reflect.Int64:
		return "a whole number without quotes"
	case reflect.Float32, reflect.Float64:
		return "a number without quotes"
	case reflect.Slice:
		return "a list"
	}
	if of.Kind() == reflect.Map && of.Elem().Kind() != reflect.Interface {
		return "an object, each value of which is " + WantType(of.Elem())
	}
	return "an object"
}
