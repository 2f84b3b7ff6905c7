package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// fix is a command, or changes of the object of its finding, or else of another one, and perhaps a command after them.
// Without a command and changes, it opens the object in an editor.
type fix struct {
	command string
	object  *Object
	changes []change
	after   string
	hints   []string
}

// change gives a field a value, or removes it if the value is nil.
type change struct {
	at fieldpath.Path
	to any
}

func run(command string) fix { return fix{command: command} }

// patch returns the fix that changes the object.
func patch(changes ...change) fix { return fix{changes: changes} }

func set(at fieldpath.Path, to any) fix { return patch(change{at, to}) }

func remove(at fieldpath.Path) fix { return set(at, nil) }

// edit returns the fix that opens the object in an editor, for what only you can decide; hint says what.
func edit(hint string) fix { return fix{}.Hint(hint) }

// Then runs a command after the change.
func (f fix) Then(command string) fix {
	f.after = command
	return f
}

// Hint says what the fix leaves open.
func (f fix) Hint(text string) fix {
	f.hints = append(slices.Clip(f.hints), text)
	return f
}

// text writes the fix of an object for a shell. A merge patch names keys and no elements of lists, such as a group or a
// container: what is in a list, you change in an editor.
func (f fix) text(o *Object) string {
	if f.object != nil {
		o = f.object
	}
	merged, inList, words := map[string]any{}, len(f.changes) == 0, []string{}
	for _, c := range f.changes {
		var keys []string
		for _, prefix := range c.at.Prefixes() {
			_, isIndex := prefix.LastIndex()
			inList, keys = inList || isIndex, append(keys, prefix.LastKey())
		}
		if !inList {
			_ = unstructured.SetNestedField(merged, c.to, keys...) // its parents are all new
		}
		words = append(words, c.String())
	}
	text, hints := f.command, f.hints
	switch {
	case text != "":
	case inList:
		text, hints = kubectl(o, "edit"), append(words, hints...)
	default:
		text = kubectl(o, "patch", "--type=merge", "-p", quote(compactJSON(merged)))
	}
	if f.after != "" {
		text += " && " + f.after
	}
	if o.Generated && len(f.changes) > 0 && !inList {
		hints = append(slices.Clip(hints), "standard input is the manifest, output is the corrected one")
	}
	if len(hints) > 0 {
		text += "  # " + strings.ReplaceAll(strings.Join(hints, "; "), "\n", " ")
	}
	return text
}

// String says what to change.
func (c change) String() string {
	if c.to == nil {
		return "remove " + c.at.String()
	}
	return fmt.Sprintf("set %s to %s", c.at, compactJSON(c.to))
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

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quote returns a text as one word of a POSIX shell.
func quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// compactJSON does not escape the characters of HTML.
func compactJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // all values were JSON
	return strings.TrimSpace(text.String())
}
