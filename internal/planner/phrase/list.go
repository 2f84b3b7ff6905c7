package phrase

import (
	"fmt"
	"slices"
	"strings"
)

// Choice names one of several choices, counted from 1: choice 2 of 3. Of one alone it says nothing.
func Choice(i, all int) string {
	if all < 2 {
		return ""
	}
	return fmt.Sprintf("choice %d of %d", i+1, all)
}

// Join joins those that say something.
func Join(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}

// OneOf lists the first of the names that would do.
func OneOf(names []string) string {
	const most = 8
	switch {
	case len(names) == 0:
		return "one that the snapshot has; it has none"
	case len(names) > most:
		return fmt.Sprintf("one that the snapshot has: %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "one that the snapshot has: " + strings.Join(names, ", ")
}

// List joins the first sentences and counts the others.
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
