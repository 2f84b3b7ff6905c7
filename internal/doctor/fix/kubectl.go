package fix

import (
	"regexp"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/inventory"
)

// Kubectl returns a command about an object.
func Kubectl(o *inventory.Object, verb string, arguments ...string) string {
	words := []string{"kubectl", verb, strings.ToLower(o.Kind), Quote(o.Name)}
	if o.Namespace != "" {
		words = append(words, "-n", Quote(o.Namespace))
	}
	return strings.Join(append(words, arguments...), " ")
}

// Comment returns a text as the comment at the end of a command.
func Comment(text string) string { return "  # " + strings.ReplaceAll(text, "\n", " ") }

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Quote returns a text as one word of a POSIX shell.
func Quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
