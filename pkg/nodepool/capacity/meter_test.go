package capacity_test

import (
	"math"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

func TestTheMeterAddsUpPriceTimesTimeOfOneDay(t *testing.T) {
	var m capacity.Meter
	b := &capacity.Budget{PerDay: 100, Location: time.FixedZone("east", 3600)}
	at := time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC)
	want := func(after time.Duration, spent float64) {
		t.Helper()
		at = at.Add(after)
		if got := m.Spent(at, b); math.Abs(got-spent) > 1e-9 {
			t.Errorf("at %s: %g are spent, want %g", at, got, spent)
		}
	}
	want(0, 0)
	m.Charge(6)
	want(5*time.Minute, 0.5)
	m.Charge(12)
	want(5*time.Minute, 1.5)
	want(time.Hour-11*time.Minute, 3.5) // ten minutes count of a gap
	want(time.Minute, 0)                // midnight in the budget's time zone
	want(5*time.Minute, 1)
	m.Charge(0)
	want(5*time.Minute, 1)
}
