package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string
	From  fieldpath.Path
	At    fieldpath.Path
	Value any
}

// remove removes a field.
func remove(at fieldpath.Path) operation { return operation{Op: "remove", At: at} }

// move moves a field.
func move(from, to fieldpath.Path) operation { return operation{Op: "move", From: from, At: to} }

// replace replaces the value of a field.
func replace(at fieldpath.Path, value any) operation {
	return operation{Op: "replace", At: at, Value: value}
}

// add adds a field, or an element to a list.
func add(at fieldpath.Path, value any) operation { return operation{Op: "add", At: at, Value: value} }

// set writes a field of an object, and creates the missing objects and lists on its path.
func set(o *Object, at fieldpath.Path, value any) operation {
	var above any = o.Fields
	prefixes := at.Prefixes()
	for i, prefix := range prefixes {
		if index, isIndex := prefix.LastIndex(); isIndex {
			list, _ := above.([]any)
			if index >= len(list) {
				return add(prefix.Parent().Key("-"), nested(prefixes[i+1:], value))
			}
			above = list[index]
			continue
		}
		fields, _ := above.(map[string]any)
		below := fields[prefix.LastKey()]
		if below == nil {
			return add(prefix, nested(prefixes[i+1:], value))
		}
		above = below
	}
	return replace(at, value)
}

// nested wraps a value in the objects and lists that lead to it.
func nested(prefixes []fieldpath.Path, inner any) any {
	for i := len(prefixes) - 1; i >= 0; i-- {
		if _, isIndex := prefixes[i].LastIndex(); isIndex {
			inner = []any{inner}
		} else {
			inner = map[string]any{prefixes[i].LastKey(): inner}
		}
	}
	return inner
}

// appendTo adds an element to a list that may be missing.
func appendTo(o *Object, list fieldpath.Value, element any) operation {
	return set(o, list.Path().Index(len(list.Items())), element)
}

// removesElement reports whether the operation removes an element of a list, and the list's pointer.
func (o operation) removesElement() (list string, ok bool) {
	if o.Op != "remove" {
		return "", false
	}
	_, ok = o.At.LastIndex()
	return o.At.Parent().Pointer(), ok
}

// appends reports whether the operation adds an element at the end of a list.
func (o operation) appends() bool { return o.Op == "add" && o.At.LastKey() == "-" }

// MarshalJSON writes a value of null, too: to test for null is to test that nothing is there.
func (o operation) MarshalJSON() ([]byte, error) {
	path := compactJSON(o.At.Pointer())
	switch o.Op {
	case "remove":
		return fmt.Appendf(nil, `{"op":"remove","path":%s}`, path), nil
	case "move":
		return fmt.Appendf(nil, `{"op":"move","from":%s,"path":%s}`, compactJSON(o.From.Pointer()), path), nil
	default:
		return fmt.Appendf(nil, `{"op":%q,"path":%s,"value":%s}`, o.Op, path, compactJSON(o.Value)), nil
	}
}

// compactJSON does not escape the characters of HTML.
func compactJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // all values were JSON
	return strings.TrimSpace(text.String())
}
