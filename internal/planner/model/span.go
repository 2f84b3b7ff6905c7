package model

import (
	"fmt"
	"math"
	"strings"
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
