package phrase

import (
	"fmt"
	"slices"
	"strings"
)

// Choice names one of several choices, counted from 1: choice 2 of 3. It returns an empty string for a single choice.
func Choice(i, all int) string {
	if all < 2 {
		return ""
	}
	return fmt.Sprintf("choice %d of %d", i+1, all)
}

// Join joins the parts that are not empty.
func Join(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}

// OneOf lists the first of the possible names.
func OneOf(names []string) string {
	const most = 8
	switch {
	case len(names) == 0:
		return "a name from the snapshot, which has none"
	case len(names) > most:
		return fmt.Sprintf("one of %s, or %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "one of " + strings.Join(names, ", ")
}

// List joins the first sentences and counts the rest.
func List(sentences []string) string {
	const most = 4
	seen := map[string]bool{}
	var different []string
	for _, s := range sentences {
		if !seen[s] {
			different = append(different, s)
		}
		seen[s] = true
	}
	if more := len(different) - most; more > 0 {
		different = append(different[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(different, "; ")
}
