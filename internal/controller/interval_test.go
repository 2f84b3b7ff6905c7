package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestJitterSpreadsDecisionsAtRestByATenth(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 18 * time.Second, 0.5: 20 * time.Second, 1: 22 * time.Second} {
		s := Config{CyclesPerSecond: 400, Jitter: func() float64 { return random }}
		if got := s.IdleStands(1000); got != want {
			t.Errorf("jitter %v gives %v, want %v", random, got, want)
		}
	}
}

func TestClustersShareHalfOfTheReadings(t *testing.T) {
	s := Config{FastPoll: 100 * time.Millisecond, RestPoll: 200 * time.Millisecond, ReadsPerSecond: 4000, CyclesPerSecond: 400,
		Jitter: func() float64 { return 0.5 }}
	for _, c := range []struct {
		clusters                                                          int
		moving, following, stands, settling, settlingTurn, waits, resting time.Duration // milliseconds
	}{
		{1, 100, 100, 50, 100, 200, 1000, 200},
		{20, 100, 100, 400, 100, 200, 1000, 200},
		{100, 500, 200, 1000, 200, 500, 2000, 400},
		{1000, 5000, 2000, 2500, 600, 5000, 20000, 600},
		{5000, 25000, 10000, 12500, 2500, 25000, 30000, 2500},
	} {
		n := counts{active: c.clusters, waiting: c.clusters, still: c.clusters}
		settles := counts{settling: c.clusters, still: c.clusters}
		for _, row := range []struct {
			what      string
			got, want time.Duration
		}{
			{"between cycles of an active one", s.turn(active, n), c.moving},
			{"between readings of an active one", s.interval(active, n), c.following},
			{"for which a decision about an active one stands", s.stands(active, n), c.stands},
			{"between readings of one that settles", s.interval(settling, settles), c.settling},
			{"between cycles of one that settles", s.turn(settling, settles), c.settlingTurn},
			{"for which a decision about one that waits stands", s.stands(waiting, n), c.waits},
			{"between readings of one at rest", s.IdleInterval(c.clusters), c.resting},
		} {
			if row.got != row.want*time.Millisecond {
				t.Errorf("%d clusters: the time %s is %v, want %v", c.clusters, row.what, row.got, row.want*time.Millisecond)
			}
		}
	}
}

func TestAClusterSettlesAfterAChangeAndNotAfterTheFirstReading(t *testing.T) {
	var m movement
	now := time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)
	m.Observe(now, raydemand.Demand{}, nil)
	if at := m.SettlesAt(); !at.IsZero() {
		t.Errorf("settles at %v after the first reading, want never", at)
	}
	more := raydemand.Demand{Requests: []raydemand.Request{{Count: 1}}}
	m.Observe(now.Add(time.Second), more, nil)
	m.Observe(now.Add(2*time.Second), more, nil)
	if got, want := m.SettlesAt(), now.Add(time.Second+settleTime); !got.Equal(want) {
		t.Errorf("settles at %v, want %v", got, want)
	}
}
