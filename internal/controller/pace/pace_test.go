package pace

import (
	"testing"
	"time"
)

func TestJitterSpreadsThePausesByAFifth(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 160 * time.Millisecond, 0.5: 200 * time.Millisecond, 1: 240 * time.Millisecond} {
		s := Settings{RestPoll: 200 * time.Millisecond, ReadsPerSecond: 200, Jitter: func() float64 { return random }}
		if got := s.Resting(1); got != want {
			t.Errorf("jitter %v gives %v, want %v", random, got, want)
		}
	}
}

func TestClustersShareHalfOfTheReadings(t *testing.T) {
	s := Settings{FastPoll: 100 * time.Millisecond, RestPoll: 200 * time.Millisecond, ReadsPerSecond: 4000, CyclesPerSecond: 400,
		Jitter: func() float64 { return 0.5 }}
	for _, c := range []struct {
		clusters        int
		moving, resting time.Duration
	}{
		{1, 100 * time.Millisecond, 200 * time.Millisecond}, {20, 100 * time.Millisecond, 200 * time.Millisecond},
		{100, 500 * time.Millisecond, 400 * time.Millisecond}, {1000, 5 * time.Second, 750 * time.Millisecond}, {5000, 25 * time.Second, 2500 * time.Millisecond},
	} {
		if moving, resting := s.Moving(c.clusters), s.Resting(c.clusters); moving != c.moving || resting != c.resting {
			t.Errorf("%d clusters: pauses %v and %v, want %v and %v", c.clusters, moving, resting, c.moving, c.resting)
		}
	}
}

func TestSlotsKeepToTheLimitBeyondTheBurst(t *testing.T) {
	var slots Slots
	now := time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)
	atOnce := 0
	for range 30 {
		if !slots.Take(now, 10).After(now) {
			atOnce++
		}
	}
	if atOnce != 11 {
		t.Errorf("%d readings at once with 10 per second, want those of a second and one", atOnce)
	}
}
