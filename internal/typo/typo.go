// Package typo finds what somebody meant who misspelt a name: a key of a file, a field of a RayCluster, a MIG profile. It
// knows no names of its own and refuses to guess where nothing is near.
package typo

import "strings"

// longest is how long a name may be to be compared: no known one has as many letters.
const longest = 64

// Nearest returns the known name that a misspelt one is likely to mean, or nothing: one that differs in case, underscores and
// hyphens only, one that it begins or that begins it, one with two neighbouring letters exchanged, or one within an edit for every
// four letters. Of several it is the nearest, of
// those the first.
func Nearest(name string, known []string) string {
	if len(name) > longest {
		return ""
	}
	written := plain(name)
	best, least := "", max(1, len(written)/4)+1
	for _, candidate := range known {
		meant := plain(candidate)
		d := Distance(written, meant)
		if len(written) > 2 && (strings.HasPrefix(meant, written) || strings.HasPrefix(written, meant) || exchanged(written, meant)) {
			d = min(d, 1)
		}
		if d < least {
			best, least = candidate, d
		}
	}
	return best
}

// exchanged reports whether two neighbouring letters of a stand the other way round in b, and nothing else is different.
func exchanged(a, b string) bool {
	for i := 0; i+1 < len(a) && len(a) == len(b); i++ {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// separators is one for all names: it builds a table when it is first used.
var separators = strings.NewReplacer("_", "", "-", "")

// plain is a name without what is easily mistaken.
func plain(name string) string { return strings.ToLower(separators.Replace(name)) }

// Slip returns the known name that a misspelt one means beyond doubt, or nothing: one that differs in case alone, or, if it is longer than five
// letters, in two letters at most. It is for where a correction is proposed and not a hint given. A known name is no slip.
func Slip(name string, known []string) string {
	const short, most = 5, 2
	if len(name) > longest {
		return ""
	}
	best, least := "", most+1
	for _, candidate := range known {
		d := Distance(strings.ToLower(name), strings.ToLower(candidate))
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

// Likely is Nearest for names that others invent, such as resources: those that differ in digits alone (A10 and A100) mean different things, and so do
// short ones of which a letter differs (TPU and GPU).
func Likely(name string, known []string) string {
	const short = 4
	written := plain(name)
	var may []string
	for _, candidate := range known {
		meant := plain(candidate)
		alike := strings.HasPrefix(meant, written) || strings.HasPrefix(written, meant) || exchanged(written, meant)
		if undigited(written) != undigited(meant) && (alike || min(len(written), len(meant)) > short) {
			may = append(may, candidate)
		}
	}
	return Nearest(name, may)
}

func undigited(name string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// Distance is how many letters have to be inserted, dropped or changed to make b of a (Levenshtein).
func Distance(a, b string) int {
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

// OtherCase returns the known name that differs from a name in case alone, or nothing. A known name means itself.
func OtherCase(name string, known []string) string {
	meant := ""
	for _, candidate := range known {
		if candidate == name {
			return ""
		}
		if meant == "" && strings.EqualFold(candidate, name) {
			meant = candidate
		}
	}
	return meant
}
