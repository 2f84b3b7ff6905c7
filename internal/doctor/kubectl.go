package doctor

import (
	"regexp"
	"strings"
)

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
