package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"heliostat.dev/heliostat/test/shards/terms"
)

// report prints the figures of a run.
func (p *proof) report(took time.Duration, log *terms.Log, v *terms.Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Printf("\n%d RayClusters, %d shards, seed %d, %s\n", p.settings.fleet, p.settings.shards, p.seed,
		took.Round(time.Second))
	faults := 0
	for _, k := range slices.Sorted(maps.Keys(p.played)) {
		fmt.Printf("  %-44s %d\n", k, p.played[k])
		faults += p.played[k]
	}
	fmt.Printf("  %-44s %d\n", "faults", faults)
	fmt.Printf("  %-44s %d\n", "processes", p.processes)
	fmt.Printf("  %-44s %d\n", "processes that wrote", len(v.Shards))
	fmt.Printf("  %-44s %d\n", "RayClusters that were written", v.Clusters)
	fmt.Printf("  %-44s %d\n", "writes", v.Writes)
	fmt.Printf("  %-44s %d\n", "terms", v.Terms)
	fmt.Printf("  %-44s %d\n", "hand-overs", v.HandOvers)
	fmt.Printf("  %-44s %d\n", "patches that the API server refused", refused(log))
	fmt.Printf("  %-44s %d\n", "patches that do not test the term", v.Unfenced)
	fmt.Printf("  %-44s %d, %d\n", "writes without an answer, torn lines", v.Unlinked, log.Torn)
	fmt.Printf("  %-44s %d\n", "times that a rule was broken", len(v.Violations))
	if len(p.taken) > 0 {
		slices.Sort(p.taken)
		fmt.Printf("  %-44s p50 %.1f s, p99 %.1f s, at most %.1f s, of %d\n", "a kill to another's decision",
			quantile(p.taken, 0.5).Seconds(), quantile(p.taken, 0.99).Seconds(), quantile(p.taken, 1).Seconds(),
			len(p.taken))
	}
	fmt.Print(lines(v.Violations, 20))
}

// refused is how many patches were not stored.
func refused(log *terms.Log) (n int) {
	for _, count := range log.Refused {
		n += count
	}
	return n
}

// quantile returns a quantile of sorted times.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
