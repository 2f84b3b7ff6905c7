package model

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Units of Span, in seconds.
const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
	year   = 365 * day
)

// Span formats a duration in seconds as kubectl formats ages, and more precisely below ten seconds: 98ms, 9.3s, 45s,
// 2m30s, 45m, 3h20m, 20h, 3d4h, 12d. Negative durations are 0s.
func Span(seconds float64) string {
	const most = 1e15 // keeps the number of seconds exact
	switch {
	case seconds < 0.0005:
		return "0s"
	case seconds < 0.9995:
		return fmt.Sprintf("%.0fms", 1000*seconds)
	case seconds < 9.95:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", seconds), ".0") + "s"
	}
	s := int64(math.Round(min(seconds, most)))
	switch {
	case s < 2*minute:
		return fmt.Sprintf("%ds", s)
	case s < 10*minute:
		return inTwo(s, minute, "m", 1, "s")
	case s < 3*hour:
		return fmt.Sprintf("%dm", s/minute)
	case s < 8*hour:
		return inTwo(s, hour, "h", minute, "m")
	case s < 2*day:
		return fmt.Sprintf("%dh", s/hour)
	case s < 8*day:
		return inTwo(s, day, "d", hour, "h")
	case s < 2*year:
		return fmt.Sprintf("%dd", s/day)
	}
	return fmt.Sprintf("%dy", s/year)
}

// inTwo formats seconds in two units, or in the larger unit if that is exact.
func inTwo(s, large int64, largeName string, small int64, smallName string) string {
	text := fmt.Sprintf("%d%s", s/large, largeName)
	if rest := s % large / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallName)
	}
	return text
}

// Expected says when something is expected, seen from now: "expected in about 2m (p90 4m)". at is when half of its kind
// are there, late when nine in ten are. It returns an empty string if at or now is zero, because nothing is known.
func Expected(at, late, now time.Time) string {
	switch {
	case at.IsZero(), now.IsZero():
		return ""
	case at.After(now) && late.Before(at):
		return "expected in about " + about(at.Sub(now))
	case at.After(now):
		return fmt.Sprintf("expected in about %s (p90 %s)", about(at.Sub(now)), about(late.Sub(now)))
	case late.After(now):
		return fmt.Sprintf("later than usual (p90 in %s)", about(late.Sub(now)))
	}
	return "later than usual"
}

// about formats a duration that is an estimate, with one or two digits that matter: 45s, 1m20s, 4m30s, 12m.
func about(d time.Duration) string {
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
