package doctor

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// place is the way to a field: keys are strings, indexes of lists ints.
type place []any

// String writes the place as people do: spec.workerGroupSpecs[1].replicas. A key with a dot or a slash stands in brackets.
func (p place) String() string {
	var text strings.Builder
	for _, step := range p {
		switch key, isKey := step.(string); {
		case !isKey:
			fmt.Fprintf(&text, "[%d]", step)
		case strings.ContainsAny(key, "./[]"):
			fmt.Fprintf(&text, "[%q]", key)
		default:
			if text.Len() > 0 {
				text.WriteByte('.')
			}
			text.WriteString(key)
		}
	}
	return text.String()
}

// pointer writes the place as a JSON pointer (RFC 6901).
func (p place) pointer() string {
	var text strings.Builder
	for _, step := range p {
		text.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(step)))
	}
	return text.String()
}

func (p place) then(steps ...any) place { return slices.Concat(p, steps) }

// value is a field of an object, perhaps absent. Reading never fails: what has another type than asked for is as good as absent.
type value struct {
	raw any
	at  place
}

func (v value) get(keys ...string) value {
	for _, key := range keys {
		fields, _ := v.raw.(map[string]any)
		v = value{raw: fields[key], at: v.at.then(key)}
	}
	return v
}

func (v value) has() bool { return v.raw != nil }

func (v value) items() []value {
	list, _ := v.raw.([]any)
	items := make([]value, len(list))
	for i, raw := range list {
		items[i] = value{raw: raw, at: v.at.then(i)}
	}
	return items
}

// keys are those of an object, sorted.
func (v value) keys() []string {
	fields, _ := v.raw.(map[string]any)
	return slices.Sorted(maps.Keys(fields))
}

func (v value) text() string {
	text, _ := v.raw.(string)
	return text
}

func (v value) flag() bool {
	flag, _ := v.raw.(bool)
	return flag
}

// whole is a whole number; ok is false for anything else.
func (v value) whole() (n int64, ok bool) {
	switch n := v.raw.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n), true
		}
	}
	return 0, false
}

// quantity reads an amount, which the API stores as a string or, where the manifest had one, as a number.
func (v value) quantity() (q resource.Quantity, ok bool) {
	if !v.has() {
		return q, false
	}
	q, err := resource.ParseQuantity(v.String())
	return q, err == nil
}

// String writes a scalar as it stands in a manifest.
func (v value) String() string {
	switch raw := v.raw.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(raw, 'f', -1, 64)
	default:
		return fmt.Sprint(raw)
	}
}
