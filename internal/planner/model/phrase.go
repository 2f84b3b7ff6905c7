package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func OneOrMany(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Plural counts things: 1 card, 2 cards.
func Plural(n int64, noun string) string {
	return fmt.Sprintf("%d %s%s", n, noun, OneOrMany(n, "", "s"))
}

func Pods(n int64) string { return Plural(n, "pod") }

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
	var different []string
	seen := map[string]bool{}
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

// Describe formats a request: {CPU 1, memory 2 GiB} where zone=a, else zone=b; a slice requirement as {GPU 1} of 10
// GiB, hardware; work that needs another place as {GPU 1} of work on nodes that go. It leaves out amounts of zero.
func Describe(r raydemand.Request) string {
	var s strings.Builder
	s.WriteByte('{')
	for _, name := range r.Bundle.Names() {
		if r.Bundle[name] == 0 {
			continue
		}
		if s.Len() > 1 {
			s.WriteString(", ")
		}
		s.WriteString(name + " " + quantity(name, r.Bundle[name]))
	}
	s.WriteByte('}')
	if r.Slice != nil {
		s.WriteString(" of " + r.Slice.String())
	}
	for i, selector := range r.Selectors {
		switch {
		case len(selector) == 0:
			continue
		case i == 0:
			s.WriteString(" where ")
		default:
			s.WriteString(", else ")
		}
		s.WriteString(selector.String())
	}
	if r.Moving {
		s.WriteString(" of work on nodes that go")
	}
	return s.String()
}

// decimalsOfMemory is enough to distinguish the sizes of machines.
const decimalsOfMemory = 2

// inUnit formats memory in the unit of another amount, GiB, MiB or bytes, without trailing zeros.
func inUnit(a, like raydemand.Amount, decimals int) string {
	unit, bytes := "B", 1.0
	switch {
	case like >= raydemand.Whole(1<<30):
		unit, bytes = "GiB", 1<<30
	case like >= raydemand.Whole(1<<20):
		unit, bytes = "MiB", 1<<20
	}
	text := strconv.FormatFloat(a.Float()/bytes, 'f', decimals, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + " " + unit
}

// quantity formats memory in GiB, or in MiB below 1 GiB, to two decimals, and everything else as Ray does.
func quantity(name string, a raydemand.Amount) string {
	if !IsMemory(name) || a <= 0 {
		return a.String()
	}
	return inUnit(a, a, decimalsOfMemory)
}

// Pair formats two quantities of one resource in one unit, to as many decimals as distinguish them.
func Pair(name string, a, b raydemand.Amount) (first, second string) {
	if !IsMemory(name) || a <= 0 || b <= 0 {
		return quantity(name, a), quantity(name, b)
	}
	const most = 14 // a ten-thousandth of a byte in a GiB
	for decimals := decimalsOfMemory; decimals <= most; decimals++ {
		first, second = inUnit(a, max(a, b), decimals), inUnit(b, max(a, b), decimals)
		if a == b || first != second {
			break
		}
	}
	return first, second
}

// Rounded formats a sum without its binary rounding error.
func Rounded(sum float64) string { return strconv.FormatFloat(sum, 'g', 12, 64) }

func IsMemory(name string) bool { return name == raydemand.Memory || name == "object_store_memory" }

func Decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func Memory(bytes int64) string { return quantity(raydemand.Memory, raydemand.Whole(bytes)) }

// Fractions formats two different numbers with as many digits as distinguish them.
func Fractions(a, b float64) (x, y string) {
	for digits := 3; digits < 9; digits++ {
		x, y = strconv.FormatFloat(a, 'g', digits, 64), strconv.FormatFloat(b, 'g', digits, 64)
		if x != y {
			return x, y
		}
	}
	return Fraction(a), Fraction(b)
}

func Fraction(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }
