package vector

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// openPrefix begins the text that stands for a value that is not known yet. No label has it in its value.
const openPrefix = "\x00"

// OpenValue returns the text that stands in a label set for the value of a label that a new pod may turn out to have:
// one of values, or any if there are none. present says that it has one of them for certain.
func OpenValue(values []string, present bool) string {
	text := openPrefix
	if present && len(values) > 0 {
		text += openPrefix
	}
	return text + strings.Join(values, ",")
}

// IsOpen reports whether a label's value is not known yet.
func IsOpen(value string) bool { return strings.HasPrefix(value, openPrefix) }

// matches reports whether labels satisfy a constraint for certain: with each value that a label may have.
func matches(c raydemand.Constraint, labels map[string]string) bool {
	value := labels[c.Key]
	if !IsOpen(value) {
		return raydemand.Selector{c}.Matches(labels)
	}
	list, present := strings.CutPrefix(value[len(openPrefix):], openPrefix)
	if list == "" || c.Op == raydemand.In && !present {
		return false
	}
	for one := range strings.SplitSeq(list, ",") {
		if slices.Contains(c.Values, one) != (c.Op == raydemand.In) {
			return false
		}
	}
	return true
}
