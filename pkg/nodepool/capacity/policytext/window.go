package policytext

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// window is open from each time of start to the next time of end: exactly if start has come at or after the last time
// of end. The times in between do not matter: from Monday to Friday at 8 to every day at 19, it is closed on Saturday.
type window struct {
	start, end cron.Schedule
	location   *time.Location
}

// Open reports whether a moment is in the window. It compares what clocks show, as if each day had all its hours: an
// end at a time that clocks skip in spring has passed when they have skipped it.
func (w window) Open(at time.Time) bool {
	if w.start == nil || w.end == nil {
		return false
	}
	at = at.In(w.location)
	clock := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
	closed, ended := last(w.end, clock)
	if !ended {
		_, opened := last(w.start, clock)
		return opened
	}
	opened := w.start.Next(closed.Add(-time.Second)) // the first at or after the last end
	return !opened.IsZero() && !opened.After(clock)
}

// farthest bounds how far last looks back, about six years: February 29 comes every four.
const farthest = 6 * 365 * 24 * time.Hour

// last returns the last time of a schedule at or before a moment; false if there is none. Schedules know only next
// times, so it doubles how far it looks back until it finds some.
func last(s cron.Schedule, at time.Time) (found time.Time, known bool) {
	for back := time.Hour; !known && back < farthest; back *= 2 {
		for next := s.Next(at.Add(-back)); !next.IsZero() && !next.After(at); next = s.Next(next) {
			found, known = next, true
		}
	}
	return found, known
}

// expressions have five fields: minute, hour, day of the month, month, day of the week.
var expressions = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// mostOfExpression bounds a cron expression in bytes.
const mostOfExpression = 200

// expression reads a cron expression that has a next time. A time zone in it, which the library would read, is refused:
// the schedule has a field for it.
func expression(in fieldpath.JSON) cron.Schedule {
	text := in.Text()
	if in.Failed() {
		return nil
	}
	const want = `a cron expression of five fields such as "0 8 * * 1-5": minute, hour, day of the month, month, ` +
		`day of the week`
	if len(text) > mostOfExpression || strings.ContainsAny(text, "=@") {
		in.Fail(want)
		return nil
	}
	parsed, err := expressions.Parse(text)
	if err != nil {
		in.Fail(want)
		return nil
	}
	// 2000 has a February 29.
	if parsed.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		in.Fail(want + "; this one never comes")
		return nil
	}
	return parsed
}
