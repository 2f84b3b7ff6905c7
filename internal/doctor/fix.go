package doctor

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// op is one operation of a JSON patch (RFC 6902).
type op struct {
	Op    string `json:"op"`
	From  string `json:"from,omitempty"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func remove(at place) op { return op{Op: "remove", Path: at.pointer()} }

func move(from, to place) op { return op{Op: "move", From: from.pointer(), Path: to.pointer()} }

// set writes a value, with the objects above it where they are missing.
func (o *Object) set(at place, to any) op {
	var above any = o.Fields
	for i, step := range at {
		key, isKey := step.(string)
		if index, isIndex := step.(int); isIndex {
			list, _ := above.([]any)
			if index >= len(list) {
				return op{Op: "add", Path: at[:i].then("-").pointer(), Value: nested(at[i+1:], to)}
			}
			above = list[index]
			continue
		}
		fields, _ := above.(map[string]any)
		if below, there := fields[key]; isKey && there && below != nil {
			above = below
			continue
		}
		return op{Op: "add", Path: at[:i+1].pointer(), Value: nested(at[i+1:], to)}
	}
	return op{Op: "replace", Path: at.pointer(), Value: to}
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

// patch is the command that carries the operations out.
func (o *Object) patch(ops ...op) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(ops); err != nil { // only what JSON cannot say, and all values come from JSON
		return o.edit(err.Error())
	}
	return o.kubectl("patch") + " --type=json -p " + quote(strings.TrimSpace(text.String()))
}

// edit opens the object in an editor, for what only a person can decide; hint says what.
func (o *Object) edit(hint string) string { return o.kubectl("edit") + comment(hint) }

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
