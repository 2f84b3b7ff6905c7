package fieldpath

import "strings"

// longestName bounds the names that are compared. No known name is longer.
const longestName = 64

// Nearest returns the known name that a misspelt one probably means, or nothing. Apart from case, underscores and
// hyphens the two are equal, or one begins with the other, or two neighboring letters are exchanged, or the distance is
// at most one for every four letters. Of several names Nearest returns the nearest, and of those the first.
func Nearest(name string, known []string) string {
	if len(name) > longestName {
		return ""
	}
	written := plainName(name)
	best, least := "", max(1, len(written)/4)+1
	for _, candidate := range known {
		meant := plainName(candidate)
		d := distance(written, meant)
		if len(written) > 2 && alike(written, meant) {
			d = min(d, 1)
		}
		if d < least {
			best, least = candidate, d
		}
	}
	return best
}

// alike reports whether one name begins with the other, or two neighboring letters are exchanged.
func alike(a, b string) bool {
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) || exchanged(a, b)
}

// exchanged reports whether a and b differ only in the order of two neighboring letters.
func exchanged(a, b string) bool {
	for i := 0; i+1 < len(a) && len(a) == len(b); i++ {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// separators builds a table when it is first used, so all names share it.
var separators = strings.NewReplacer("_", "", "-", "")

// plainName returns a name without case and separators.
func plainName(name string) string { return strings.ToLower(separators.Replace(name)) }

// Slip returns the known name that a misspelt one certainly means, or nothing: the two differ only in case or, if the
// known name has more than five letters, in at most two letters. Use it to propose a correction, and Nearest to give a
// hint. A known name is not a slip.
func Slip(name string, known []string) string {
	const short, most = 5, 2
	if len(name) > longestName {
		return ""
	}
	best, least := "", most+1
	for _, candidate := range known {
		d := distance(strings.ToLower(name), strings.ToLower(candidate))
		switch {
		case name == candidate:
			return ""
		case d > 0 && len(candidate) <= short:
			continue
		case d < least:
			best, least = candidate, d
		}
	}
	return best
}

// distance returns how many letters must be inserted, removed or changed to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
