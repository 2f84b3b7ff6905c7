package arrival

import (
	"math"
	"slices"
	"time"
)

// Times are how long workers of a group take to start.
type Times struct {
	// Node is from the request for a machine until a pod is bound to its node, of pods that had to wait for one. Join
	// is from there until the worker has joined Ray. Whole is from the creation of a pod until then, of all pods.
	Node, Join, Whole Leg
}

// Leg is how long a part of the way takes, by the last workers.
type Leg struct {
	// Samples is how many workers it was learned from. P50Seconds is the time that half of them needed at most,
	// P90Seconds the time that nine in ten needed at most.
	Samples                int
	P50Seconds, P90Seconds float64
}

// leastSamples is how many workers must have been seen before a time is expected of others. With fewer, the median is
// one worker's time.
const leastSamples = 3

// Known reports whether enough workers have been seen.
func (l Leg) Known() bool { return l.Samples >= leastSamples }

// Median returns the time that half of the workers needed at most; 0 if too few have been seen.
func (l Leg) Median() time.Duration {
	if !l.Known() {
		return 0
	}
	return seconds(l.P50Seconds)
}

// After returns when half, and when nine in ten are there, if they begin at a moment. Both are that moment if no worker
// has been seen.
func (l Leg) After(begun time.Time) (middle, late time.Time) {
	return begun.Add(seconds(l.P50Seconds)), begun.Add(seconds(l.P90Seconds))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// legOf returns what samples say, by the nearest rank. It rounds to milliseconds.
func legOf(samples []time.Duration) Leg {
	if len(samples) == 0 {
		return Leg{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	quantile := func(q float64) float64 {
		at := int(math.Ceil(q*float64(len(sorted)))) - 1
		return sorted[max(at, 0)].Round(time.Millisecond).Seconds()
	}
	return Leg{Samples: len(sorted), P50Seconds: quantile(0.5), P90Seconds: quantile(0.9)}
}
