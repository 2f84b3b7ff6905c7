package planner

import (
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// memoryUnit is one of the two units that memory is told in, below them bytes.
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

// write rounds to so many decimals and leaves out what is 0 at the end.
func (u memoryUnit) write(a raydemand.Amount, decimals int) string {
	text := strconv.FormatFloat(a.Float()/u.bytes, 'f', decimals, 64)
	if decimals > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + u.name
}

// decimalsOfMemory is enough to tell the sizes of machines apart.
const decimalsOfMemory = 2

// quantity writes memory in GiB, or in MiB where it is less than one, to two decimals; everything else as Ray does.
func quantity(name string, a raydemand.Amount) string {
	if !isMemory(name) || a <= 0 {
		return a.String()
	}
	return memoryUnitFor(a).write(a, decimalsOfMemory)
}

// pair writes two quantities of one resource in one unit, to as many decimals as tell them apart.
func pair(name string, a, b raydemand.Amount) (string, string) {
	if !isMemory(name) || a <= 0 || b <= 0 {
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

// needsHas says what is asked for of one resource and what is there: needs 2 GPU, has 1.
func needsHas(name string, need, has raydemand.Amount) string {
	needs, there := pair(name, need, has)
	return fmt.Sprintf("needs %s %s, has %s", needs, name, there)
}

func freeOf(name string, free, total raydemand.Amount) string {
	left, all := pair(name, free, total)
	return fmt.Sprintf("%s of %s free", left, all)
}
