package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// fix is a command, or a patch of the object of its finding, or else of another one, and perhaps a command after it.
// Without a command and operations, it opens the object in an editor.
type fix struct {
	command    string
	object     *Object
	operations []operation
	after      string
	hints      []string
}

// run returns the fix that runs a command.
func run(command string) fix { return fix{command: command} }

// patch returns the fix that changes the object.
func patch(operations ...operation) fix { return fix{operations: operations} }

// edit returns the fix that opens the object in an editor, for what only you can decide; hint says what.
func edit(hint string) fix { return fix{}.Hint(hint) }

// of returns the fix of a finding about an object.
func (f fix) of(o *Object) fix {
	if f.command == "" && f.object == nil {
		f.object = o
	}
	if f.command == "" && len(f.operations) == 0 {
		f.command = kubectl(f.object, "edit")
	}
	return f
}

// Then runs a command after the patch.
func (f fix) Then(command string) fix {
	f.after = command
	return f
}

// Hint says what the fix leaves open.
func (f fix) Hint(text string) fix {
	f.hints = append(slices.Clip(f.hints), text)
	return f
}

// String writes the fix for a shell.
func (f fix) String() string {
	text := f.command
	if len(f.operations) > 0 {
		patch := slices.Concat(testsOf(f.object, f.operations), f.operations)
		text = kubectl(f.object, "patch") + " --type=json -p " + quote(compactJSON(patch))
	}
	if f.after != "" {
		text += " && " + f.after
	}
	hints := f.hints
	if f.object != nil && f.object.Generated {
		hints = append(slices.Clip(hints), "standard input is the manifest, output is the corrected one")
	}
	if len(hints) > 0 {
		text += comment(strings.Join(hints, "; "))
	}
	return text
}

// kubectl returns a command about an object. An object that has no name yet is changed in its manifest, which the
// command reads from standard input.
func kubectl(o *Object, verb string, arguments ...string) string {
	if o.Generated {
		return strings.Join(append(ofManifest(verb), arguments...), " ")
	}
	words := []string{"kubectl", verb, strings.ToLower(o.Kind), quote(o.Name)}
	if o.Namespace != "" {
		words = append(words, "-n", quote(o.Namespace))
	}
	return strings.Join(append(words, arguments...), " ")
}

func ofManifest(verb string) []string {
	switch verb {
	case "edit":
		return []string{"kubectl", "create", "--edit", "-f", "-"}
	case "patch", "label", "annotate":
		return []string{"kubectl", verb, "--local", "-f", "-", "-o", "yaml"}
	}
	return []string{"kubectl", verb, "-f", "-"}
}

// comment returns a text as the comment at the end of a command.
func comment(text string) string { return "  # " + strings.ReplaceAll(text, "\n", " ") }

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quote returns a text as one word of a POSIX shell.
func quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string
	At    fieldpath.Path
	Value any
}

// remove removes a field.
func remove(at fieldpath.Path) operation { return operation{Op: "remove", At: at} }

// replace replaces the value of a field.
func replace(at fieldpath.Path, value any) operation {
	return operation{Op: "replace", At: at, Value: value}
}

// add adds a field, or an element to a list.
func add(at fieldpath.Path, value any) operation { return operation{Op: "add", At: at, Value: value} }

// set writes a field of an object, and creates the missing objects and lists on its path.
func (o *Object) set(at fieldpath.Path, value any) operation {
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
func (o *Object) appendTo(list fieldpath.Value, element any) operation {
	return o.set(list.Path().Index(len(list.Items())), element)
}

// MarshalJSON writes a value of null, too: to test for null is to test that nothing is there.
func (o operation) MarshalJSON() ([]byte, error) {
	path := compactJSON(o.At.Pointer())
	if o.Op == "remove" {
		return fmt.Appendf(nil, `{"op":"remove","path":%s}`, path), nil
	}
	return fmt.Appendf(nil, `{"op":%q,"path":%s,"value":%s}`, o.Op, path, compactJSON(o.Value)), nil
}

// compactJSON does not escape the characters of HTML.
func compactJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // all values were JSON
	return strings.TrimSpace(text.String())
}

// testsOf returns operations that test whether the object still has what the patch was made for. If someone else, or
// another patch, has changed it, for example the order of a list, the API server refuses the whole patch.
func testsOf(o *Object, operations []operation) (tests []operation) {
	root, seen := o.Root(), map[string]bool{}
	add := func(at fieldpath.Path, value any) {
		if pointer := at.Pointer(); !seen[pointer] {
			seen[pointer] = true
			tests = append(tests, operation{Op: "test", At: at, Value: value})
		}
	}
	for _, operation := range operations {
		for _, prefix := range operation.At.Prefixes() { // the name of each list element on the path
			v, there := root.Find(prefix)
			if _, isElement := prefix.LastIndex(); !isElement || !there {
				continue
			}
			for _, key := range []string{"groupName", "name"} {
				if name := v.Get(key); name.Text() != "" {
					add(name.Path(), name.Raw())
					break
				}
			}
		}
		// The old value is still there, or there is none: the API server's patch library treats an absent key as null.
		// Strings that the API server may store in other bytes are not tested, nor long values.
		v, there := root.Find(operation.At)
		text, err := json.Marshal(v.Raw())
		if there && err == nil && len(text) <= longestTest && !bytes.Contains(text, []byte(`\u00`)) {
			add(operation.At, v.Raw())
		}
	}
	return tests
}

// longestTest bounds in bytes the values that a patch tests.
const longestTest = 256
