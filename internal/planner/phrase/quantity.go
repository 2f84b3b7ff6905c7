// Package phrase formats amounts, durations, counts and lists. It must not know what a plan is: packages that decide
// use it for names and sizes only. Sentences about decisions belong to package why.
package phrase

import (
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// memoryUnit is a unit of memory: GiB, MiB or bytes.
type memoryUnit struct {
	name  string
	bytes float64
}

func memoryUnitFor(a raydemand.Amount) memoryUnit {
	switch {
	case a >= raydemand.Whole(1<<30):
		return memoryUnit{"GiB", 1 << 30}
	case a >= raydemand.Whole(1<<20):
		return memoryUnit{"MiB", 1 << 20}
	}
	return memoryUnit{"B", 1}
}

// write rounds to a number of decimals and removes trailing zeros.
func (u memoryUnit) write(a raydemand.Amount, decimals int) string {
	text := strconv.FormatFloat(a.Float()/u.bytes, 'f', decimals, 64)
	if decimals > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + u.name
}

// decimalsOfMemory is enough to distinguish the sizes of machines.
const decimalsOfMemory = 2

// quantity formats memory in GiB, or in MiB below 1 GiB, to two decimals, and everything else as Ray does.
func quantity(name string, a raydemand.Amount) string {
	if !IsMemory(name) || a <= 0 {
		return a.String()
	}
	return memoryUnitFor(a).write(a, decimalsOfMemory)
}

// Pair formats two quantities of one resource in one unit, to as many decimals as distinguish them.
func Pair(name string, a, b raydemand.Amount) (string, string) {
	if !IsMemory(name) || a <= 0 || b <= 0 {
		return quantity(name, a), quantity(name, b)
	}
	const most = 14 // a ten-thousandth of a byte in a GiB
	unit := memoryUnitFor(max(a, b))
	for decimals := decimalsOfMemory; ; decimals++ {
		first, second := unit.write(a, decimals), unit.write(b, decimals)
		if a == b || first != second || decimals == most {
			return first, second
		}
	}
}

// NeedsHas returns, for example, needs 2 GPU, has 1.
func NeedsHas(name string, need, has raydemand.Amount) string {
	needs, there := Pair(name, need, has)
	return fmt.Sprintf("needs %s %s, has %s", needs, name, there)
}

func FreeOf(name string, free, total raydemand.Amount) string {
	left, all := Pair(name, free, total)
	return fmt.Sprintf("%s of %s free", left, all)
}

// Rounded formats a sum without its binary rounding error.
func Rounded(sum float64) string {
	return strconv.FormatFloat(sum, 'g', 12, 64)
}

func IsMemory(name string) bool { return name == raydemand.Memory || name == "object_store_memory" }

func Decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func Memory(bytes int64) string { return quantity(raydemand.Memory, raydemand.Whole(bytes)) }

// Fractions formats two different numbers with as many digits as distinguish them.
func Fractions(a, b float64) (string, string) {
	for digits := 3; digits < 9; digits++ {
		x, y := strconv.FormatFloat(a, 'g', digits, 64), strconv.FormatFloat(b, 'g', digits, 64)
		if x != y {
			return x, y
		}
	}
	return Fraction(a), Fraction(b)
}

func Fraction(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }
