package vector

import (
	"math"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TimesAtMost(a, b int64) int64 {
	if a > math.MaxInt64/4/b {
		return math.MaxInt64 / 4
	}
	return a * b
}

func Sum(counts []int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// MaxCount limits counts of bundles and pods.
const MaxCount = model.MaxCount

func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func RoundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// BundlesOf counts the bundles of items. They never need more pods than that.
func BundlesOf(items []*Item) (bundles int64) {
	for _, it := range items {
		bundles = min(bundles+it.Request.Count, MaxCount)
	}
	return bundles
}

// TimesAmount returns n times an amount, limited to what can be counted.
func TimesAmount(a raydemand.Amount, n int64) raydemand.Amount {
	if a > 0 && n > int64(raydemand.MaxAmount/a) {
		return raydemand.MaxAmount
	}
	return a * raydemand.Amount(n)
}
