package model

import (
	"testing"
	"time"
)

func TestExpectedIsNeverNegative(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		at, late time.Duration
		want     string
	}{
		"minutes":              {124 * time.Second, 232 * time.Second, "expected in about 2m (p90 4m)"},
		"seconds":              {12400 * time.Millisecond, 47 * time.Second, "expected in about 12s (p90 45s)"},
		"now":                  {time.Millisecond, 2 * time.Millisecond, "expected in about 1s (p90 1s)"},
		"an hour":              {61*time.Minute + 20*time.Second, 4 * time.Hour, "expected in about 61m (p90 4h)"},
		"the median is over":   {-time.Second, 40 * time.Second, "later than usual (p90 in 40s)"},
		"both are over":        {-time.Minute, -time.Second, "later than usual"},
		"this moment is over":  {0, 0, "later than usual"},
		"only the median":      {5 * time.Minute, -time.Hour, "expected in about 5m"},
		"a late one that came": {-time.Hour, 0, "later than usual"},
	} {
		if got := Expected(now.Add(c.at), now.Add(c.late), now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := Expected(time.Time{}, time.Time{}, now); got != "" {
		t.Errorf("nothing is known, and it says %q", got)
	}
	if got := Expected(now, now.Add(time.Minute), time.Time{}); got != "" {
		t.Errorf("a snapshot without takenAt says %q", got)
	}
}
