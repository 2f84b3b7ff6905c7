// Package fix writes the commands that the doctor prints: a kubectl command, or a JSON patch of one object. A patch
// tests what it was made for, so that the API server refuses it if the object has changed, and Merge joins patches that
// would conflict. So fixes work as printed, in any order, and you can leave some out.
//
// The package runs nothing, and it knows no check: which fix a finding needs is the caller's decision.
package fix

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/inventory"
)

// Fix is a command, or a patch of an object and perhaps a command after it.
type Fix struct {
	command    string
	object     *inventory.Object
	operations []Operation
	after      string
	hints      []string
	// also are the codes of other findings that the same patch fixes.
	also []string
}

// Run returns the fix that runs a command.
func Run(command string) Fix { return Fix{command: command} }

// Patch returns the fix that changes an object.
func Patch(o *inventory.Object, operations ...Operation) Fix {
	return Fix{object: o, operations: operations}
}

// Edit returns the fix that opens an object in an editor, for what only you can decide; hint says what.
func Edit(o *inventory.Object, hint string) Fix {
	fix := Run(Kubectl(o, "edit")).Hint(hint)
	fix.object = o
	return fix
}

// Then runs a command after the patch.
func (f Fix) Then(command string) Fix {
	f.after = command
	return f
}

// Hint says what the fix leaves open.
func (f Fix) Hint(text string) Fix {
	f.hints = append(slices.Clip(f.hints), text)
	return f
}

// String writes the fix for a shell.
func (f Fix) String() string {
	text := f.command
	if len(f.operations) > 0 {
		patch := slices.Concat(tests(f.object, f.operations), f.operations)
		text = Kubectl(f.object, "patch") + " --type=json -p " + Quote(compactJSON(patch))
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
		text += Comment(strings.Join(hints, "; "))
	}
	return text
}
