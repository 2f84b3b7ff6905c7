package main

import (
	"fmt"
	"slices"
	"time"
)

// quantile of durations that are sorted.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func row(what string, times []time.Duration) {
	slices.Sort(times)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	fmt.Printf("%-42s %8d %9.1f %9.1f %9.1f %9.1f\n", what, len(times), ms(quantile(times, 0.5)),
		ms(quantile(times, 0.9)), ms(quantile(times, 0.99)), ms(quantile(times, 1)))
}

func head(title string) {
	fmt.Printf("\n%s\n\n%-42s %8s %9s %9s %9s %9s\n", title, "milliseconds", "count", "p50", "p90", "p99", "most")
}
