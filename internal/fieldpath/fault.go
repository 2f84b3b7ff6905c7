package fieldpath

import (
	"strings"
	"unicode/utf8"
)

// Fault is a field that is not what it should be.
type Fault struct {
	Path Path
	// Value is what the field has, in one short line, or Missing.
	Value string
	// Want says what would be right.
	Want string
	// OutOfRange is set if the field is a whole number that does not fit.
	OutOfRange bool
}

// Error writes path, value and what would be right.
func (f *Fault) Error() string {
	text := f.Value + ": want " + f.Want
	if at := f.Path.String(); at != "" {
		return at + ": " + text
	}
	return text
}

// Missing is the Value of a Fault if the field is absent.
const Missing = "missing"

// Excerpt returns the beginning of a text, at most so many bytes of it, with an ellipsis if it goes on.
func Excerpt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Unknown is a member of a name that its object does not have.
type Unknown struct {
	Path Path
	// Value is what the member has, in one short line.
	Value string
	// Near is the known name that was probably meant, or empty. Known are all names.
	Near  string
	Known []string
}

// Want says which name would be right.
func (u Unknown) Want() string { return WantName(u.Path.LastKey(), u.Known) }

// WantName says which of the known names an unknown one should be: the nearest, or one of them all.
func WantName(unknown string, known []string) string {
	if near := Nearest(unknown, known); near != "" {
		return near
	}
	return "one of " + strings.Join(known, ", ")
}
