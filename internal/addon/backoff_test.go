package addon

import (
	"testing"
	"time"
)

func TestPausesDoubleUpToTheLongest(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var p Pause
	if p.Resting(now) || p.Failures() != 0 {
		t.Error("it rests before anything has failed")
	}
	for _, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second,
		8 * time.Second, 16 * time.Second, LongestPause, LongestPause} {
		p.Fail(now)
		if !p.Resting(now.Add(want-1)) || p.Resting(now.Add(want)) {
			t.Errorf("after %d failures the pause is not %v", p.Failures(), want)
		}
	}
	for range 100 {
		p.FailWithin(now, time.Second)
	}
	if !p.Resting(now.Add(time.Second-1)) || p.Resting(now.Add(time.Second)) {
		t.Errorf("after %d failures the pause is not the longest that is given", p.Failures())
	}
}
