package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// op is one operation of a JSON patch (RFC 6902).
type op struct {
	Op    string
	From  place
	At    place
	Value any
}

// MarshalJSON writes a value of null, too: to test for it is to test that nothing is there.
func (o op) MarshalJSON() ([]byte, error) {
	path := plainJSON(o.At.pointer())
	switch o.Op {
	case "remove":
		return fmt.Appendf(nil, `{"op":"remove","path":%s}`, path), nil
	case "move":
		return fmt.Appendf(nil, `{"op":"move","from":%s,"path":%s}`, plainJSON(o.From.pointer()), path), nil
	default:
		return fmt.Appendf(nil, `{"op":%q,"path":%s,"value":%s}`, o.Op, path, plainJSON(o.Value)), nil
	}
}

// plainJSON leaves the signs of HTML as they are.
func plainJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // all values come from JSON
	return strings.TrimSpace(text.String())
}

func remove(at place) op { return op{Op: "remove", At: at} }

func move(from, to place) op { return op{Op: "move", From: from, At: to} }

// set writes a value, with the objects above it where they are missing.
func (o *Object) set(at place, to any) op {
	var above any = o.Fields
	for i, step := range at {
		key, isKey := step.(string)
		if index, isIndex := step.(int); isIndex {
			list, _ := above.([]any)
			if index >= len(list) {
				return op{Op: "add", At: at[:i].then("-"), Value: nested(at[i+1:], to)}
			}
			above = list[index]
			continue
		}
		fields, _ := above.(map[string]any)
		if below, there := fields[key]; isKey && there && below != nil {
			above = below
			continue
		}
		return op{Op: "add", At: at[:i+1], Value: nested(at[i+1:], to)}
	}
	return op{Op: "replace", At: at, Value: to}
}

// nested wraps a value in the objects that lead to it.
func nested(steps place, inner any) any {
	for i := len(steps) - 1; i >= 0; i-- {
		if key, isKey := steps[i].(string); isKey {
			inner = map[string]any{key: inner}
		} else {
			inner = []any{inner}
		}
	}
	return inner
}

// add appends to a list that may be missing.
func (o *Object) add(list value, item any) op {
	return o.set(list.at.then(len(list.items())), item)
}

// kubectl begins a command about the object.
func (o *Object) kubectl(verb string, arguments ...string) string {
	words := []string{"kubectl", verb, strings.ToLower(o.Kind), quote(o.Name)}
	if o.Namespace != "" {
		words = append(words, "-n", quote(o.Namespace))
	}
	return strings.Join(append(words, arguments...), " ")
}

func comment(text string) string { return "  # " + strings.ReplaceAll(text, "\n", " ") }

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quote makes one word of a POSIX shell.
func quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
