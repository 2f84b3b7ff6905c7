package doctor

import (
	"slices"
	"strings"
)

// fix is a command, or a patch of an object and perhaps a command after it.
type fix struct {
	command    string
	object     *Object
	operations []operation
	after      string
	hints      []string
	// also are the codes of other findings that the same patch fixes.
	also []string
}

// run returns the fix that runs a command.
func run(command string) fix { return fix{command: command} }

// patch returns the fix that changes an object.
func patch(o *Object, operations ...operation) fix {
	return fix{object: o, operations: operations}
}

// edit returns the fix that opens an object in an editor, for what only you can decide; hint says what.
func edit(o *Object, hint string) fix {
	f := run(kubectl(o, "edit")).Hint(hint)
	f.object = o
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
	if len(f.also) > 0 {
		hints = append(slices.Clip(hints), "this patch also fixes "+strings.Join(f.also, ", "))
	}
	if len(hints) > 0 {
		text += comment(strings.Join(hints, "; "))
	}
	return text
}
