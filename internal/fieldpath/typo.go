package fieldpath

import "strings"

// longestName bounds the names that are compared. No known name is longer.
const longestName = 64

// separators builds a table when it is first used, so all names share it.
var separators = strings.NewReplacer("_", "", "-", "")

// Nearest returns the known name that a misspelt one probably means, or nothing: apart from case, underscores and
// hyphens the two are equal, or differ in one letter if the known name has four or five, and in at most two if it has
// more. Of several names it returns the nearest, and of those the first. A known name is not misspelt.
func Nearest(name string, known []string) string {
	if len(name) > longestName {
		return ""
	}
	plain := func(name string) string { return strings.ToLower(separators.Replace(name)) }
	best, least := "", longestName
	for _, candidate := range known {
		if name == candidate {
			return ""
		}
		d := distance(plain(name), plain(candidate))
		if most := min(2, max(0, (len(candidate)-2)/2)); d < least && d <= most {
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
