package phrase

import (
	"fmt"
	"math"
	"time"
)

// Expected says when something is expected, seen from now: "expected in about 2m (p90 4m)". at is when half of its kind
// are there, late when nine in ten are. It returns an empty string if at or now is zero, because nothing is known.
func Expected(at, late, now time.Time) string {
	switch {
	case at.IsZero(), now.IsZero():
		return ""
	case at.After(now) && late.Before(at):
		return "expected in about " + About(at.Sub(now))
	case at.After(now):
		return fmt.Sprintf("expected in about %s (p90 %s)", About(at.Sub(now)), About(late.Sub(now)))
	case late.After(now):
		return fmt.Sprintf("later than usual (p90 in %s)", About(late.Sub(now)))
	}
	return "later than usual"
}

// About formats a duration that is an estimate, with one or two digits that matter: 45s, 1m20s, 4m30s, 12m.
func About(d time.Duration) string {
	unit := time.Second
	switch {
	case d >= 10*time.Minute:
		unit = time.Minute
	case d >= 2*time.Minute:
		unit = 30 * time.Second
	case d >= 20*time.Second:
		unit = 5 * time.Second
	}
	return Span(math.Max(d.Round(unit).Seconds(), 1))
}
