package printer

import (
	"time"

	"heliostat.dev/heliostat/internal/planner"
)

// Moment writes when something was. As in kubectl, what describes one object has times, and tables have ages.
func Moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Ago writes how long before now something was.
func Ago(at, now time.Time) string { return planner.Span(now.Sub(at).Seconds()) + " ago" }
