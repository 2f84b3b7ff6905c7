package doctor

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// remedy is what mends a finding: a command, or a patch of an object and perhaps a command after it.
type remedy struct {
	command string
	of      *Object
	ops     []op
	after   string
	hints   []string
	// also are the codes of other findings that the same patch mends.
	also []string
}

// run is a command.
func run(command string) remedy { return remedy{command: command} }

// patch changes the object.
func (o *Object) patch(ops ...op) remedy { return remedy{of: o, ops: ops} }

// edit opens the object in an editor, for what only a person can decide; hint says what.
func (o *Object) edit(hint string) remedy { return run(o.kubectl("edit")).hint(hint) }

// then runs a command when the patch was taken.
func (r remedy) then(command string) remedy {
	r.after = command
	return r
}

// hint says what the remedy leaves open.
func (r remedy) hint(text string) remedy {
	r.hints = append(slices.Clip(r.hints), text)
	return r
}

// String writes the remedy for a shell.
func (r remedy) String() string {
	text := r.command
	if len(r.ops) > 0 {
		text = r.of.kubectl("patch") + " --type=json -p " + quote(plainJSON(slices.Concat(r.of.guards(r.ops), r.ops)))
	}
	if r.after != "" {
		text += " && " + r.after
	}
	hints := r.hints
	if len(r.also) > 0 {
		hints = append(slices.Clip(hints), "this one patch mends "+strings.Join(r.also, ", ")+" too")
	}
	if len(hints) > 0 {
		text += comment(strings.Join(hints, "; "))
	}
	return text
}

// guards are tests that the operations find what they were made for. Lists may have got other entries since, by somebody else or by another patch: then the
// whole patch is refused and nothing is changed.
func (o *Object) guards(ops []op) []op {
	var tests []op
	seen := map[string]bool{}
	test := func(at place, value any) {
		if !seen[at.pointer()] {
			seen[at.pointer()] = true
			tests = append(tests, op{Op: "test", At: at, Value: value})
		}
	}
	for _, operation := range ops {
		for _, at := range []place{operation.From, operation.At} {
			o.guardNames(at, test)
		}
		switch operation.Op {
		case "remove", "replace":
			o.guardValue(operation.At, test)
		case "move":
			o.guardValue(operation.From, test)
			o.guardValue(operation.At, test)
		case "add":
			o.guardValue(operation.At, test)
		}
	}
	return tests
}

// guardNames tests the name of each entry of a list on the way.
func (o *Object) guardNames(at place, test func(place, any)) {
	v := o.root()
	for _, step := range at {
		index, isIndex := step.(int)
		if !isIndex {
			key, _ := step.(string)
			v = v.get(key)
			continue
		}
		items := v.items()
		if index >= len(items) {
			return
		}
		v = items[index]
		for _, key := range []string{"groupName", "name"} {
			if name := v.get(key); name.text() != "" {
				test(name.at, name.raw)
				break
			}
		}
	}
}

// longest is the length of what a patch tests as a whole.
const longest = 256

// guardValue tests that the old value is still there, or that there is none. The API server's library for patches takes a key that is not there for
// null. Strings that it may keep in other bytes are not tested, and neither are long values.
func (o *Object) guardValue(at place, test func(place, any)) {
	v := o.root()
	for _, step := range at {
		switch step := step.(type) {
		case int:
			items := v.items()
			if step >= len(items) {
				return
			}
			v = items[step]
		case string:
			if _, isObject := v.raw.(map[string]any); !isObject {
				return // the end of a list, or what an operation before this one makes
			}
			v = v.get(step)
		}
	}
	if text, err := json.Marshal(v.raw); err == nil && len(text) <= longest && !bytes.Contains(text, []byte(`\u00`)) {
		test(at, v.raw)
	}
}
