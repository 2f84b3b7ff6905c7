package forecast

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// weeks returns a series in which each day needs some workers from nine to ten o'clock; -1 is an hour in which nobody
// has looked.
func weeks(days ...int32) Series {
	workers := make([]int32, 288*len(days))
	for i := range workers {
		if hour := i % 288 / 12; hour == 9 {
			workers[i] = days[i/288]
		}
	}
	return SeriesOf(monday, workers)
}

func TestAForecastSaysWhichMomentsItComesFrom(t *testing.T) {
	fourWeeks := weeks(
		6, 1, 1, 1, 1, 0, 0,
		8, 2, 1, 1, 1, 0, 0,
		2, 3, 1, 1, 1, 0, 0,
		7, 4, 0, 1, -1, 0, 0,
	)
	const half = 0.5
	at := func(day, hour, minute int) time.Time {
		return monday.AddDate(0, 0, day).Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	}
	for _, test := range []struct {
		name     string
		of       Series
		at       time.Time
		start    time.Duration
		quantile float64
		workers  int
		why      string
	}{
		{"half of the Mondays", fourWeeks, at(28, 9, 2), 5 * time.Minute, half, 7,
			"of the last 4 Mondays from 09:00 to 09:15 UTC, 2 needed at least 7 workers"},
		{"a quarter of the Mondays is enough", fourWeeks, at(28, 9, 0), 5 * time.Minute, 0.75, 8,
			"of the last 4 Mondays from 09:00 to 09:10 UTC, 1 needed at least 8 workers"},
		{"all of the Mondays", fourWeeks, at(28, 9, 0), 5 * time.Minute, 0.1, 2,
			"of the last 4 Mondays from 09:00 to 09:10 UTC, 4 needed at least 2 workers"},
		{"one start time before", fourWeeks, at(28, 8, 50), 10 * time.Minute, half, 7,
			"of the last 4 Mondays from 08:50 to 09:05 UTC, 2 needed at least 7 workers"},
		{"longer before", fourWeeks, at(28, 8, 45), 10 * time.Minute, half, 0,
			"of the last 4 Mondays from 08:45 to 09:00 UTC, none needed a worker"},
		{"too few of the Wednesdays", fourWeeks, at(30, 9, 0), time.Minute, 0.2, 0,
			"of the last 4 Wednesdays from 09:00 to 09:10 UTC, 3 needed a worker, and a worker pays from 4"},
		{"Fridays of which one is not known", fourWeeks, at(32, 9, 0), time.Minute, half, 1,
			"of the last 3 Fridays from 09:00 to 09:10 UTC, 3 needed a worker"},
		{"a history of four days", weeks(5, 3, 4, 0), at(4, 9, 0), time.Minute, half, 4,
			"of the last 4 days from 09:00 to 09:10 UTC, 2 needed at least 4 workers"},
		{"a history of one day", weeks(5), at(1, 9, 0), time.Minute, half, 0,
			"the history is too short: a forecast needs the same time of 2 of the last 7 days"},
		{"no history", Series{}, at(1, 9, 0), time.Minute, half, 0,
			"the history is too short: a forecast needs the same time of 2 of the last 7 days"},
	} {
		f := test.of.Ahead(Question{test.at, test.start, test.quantile})
		if f.Workers != test.workers || f.Why != test.why {
			t.Errorf("%s: %d workers: %s\nwant %d: %s", test.name, f.Workers, f.Why, test.workers, test.why)
		}
	}
}

func TestALongStartDoesNotLookAtWhatComes(t *testing.T) {
	s := weeks(5, 0, 9)
	f := s.Ahead(Question{s.Start(2 * 288), 30 * time.Hour, 0.5})
	if f.Workers != 5 && f.Workers != 0 {
		t.Errorf("%d workers, of a day that has not begun", f.Workers)
	}
}

func TestTheModelOfAGroup(t *testing.T) {
	// Each step is ten minutes, and workers start within five.
	const minute = 1.0 / 60
	keep := func(workers ...int) func(int) int { return func(i int) int { return workers[i] } }
	for _, test := range []struct {
		name   string
		demand []int32
		group  Group
		keep   func(int) int
		want   Outcome
	}{
		{"nothing is needed", []int32{0, 0}, Group{}, nil, Outcome{}},
		{"two workers start when they are needed, and go after their timeout", []int32{2, 0, 0, 0},
			Group{IdleTimeout: 15 * time.Minute}, nil,
			Outcome{Paid: 2 * 25 * minute, Idle: 2 * 15 * minute, Waited: 2 * 5 * minute, Needed: 20 * minute, Starts: 2}},
		{"a kept worker is ready before it is needed", []int32{0, 1, 0, 0}, Group{IdleTimeout: 5 * time.Minute},
			keep(1, 1, 0, 0),
			Outcome{Paid: 25 * minute, Idle: 10 * minute, Needed: 10 * minute, Starts: 1}},
		{"a kept worker is not needed", []int32{0, 0, 0, 0}, Group{IdleTimeout: time.Minute}, keep(1, 1, 0, 0),
			Outcome{Paid: 20 * minute, Idle: 15 * minute, Starts: 1}},
		{"work goes to a worker within its timeout", []int32{1, 0, 1}, Group{IdleTimeout: time.Hour}, nil,
			Outcome{Paid: 30 * minute, Idle: 10 * minute, Waited: 5 * minute, Needed: 20 * minute, Starts: 1}},
		{"the maximum", []int32{5}, Group{Max: 2}, keep(9),
			Outcome{Paid: 20 * minute, Waited: 10 * minute, Needed: 20 * minute, Starts: 2}},
		{"the minimum", []int32{0, 0}, Group{Min: 1}, nil,
			Outcome{Paid: 20 * minute, Idle: 15 * minute, Starts: 1}},
		{"what is not known does not count", []int32{1, -1, 1}, Group{IdleTimeout: time.Hour}, nil,
			Outcome{Paid: 20 * minute, Waited: 5 * minute, Needed: 20 * minute, Starts: 1}},
	} {
		test.group.Start = 5 * time.Minute
		got := Replay(10*time.Minute, test.demand, test.group, test.keep)
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
		if diff := cmp.Diff(test.want, got, near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestTheQuantileIsTheOneThatWouldHaveCostLeast(t *testing.T) {
	g := Group{Start: 10 * time.Minute, IdleTimeout: time.Minute}
	// On half of the days nobody comes.
	restless := weeks(4, 0, 4, 4, 0, 0, 4, 4, 0, 4, 0, 4, 4, 0, 0, 4)
	for _, test := range []struct {
		name     string
		of       Series
		costs    Costs
		pays     bool
		quantile float64
	}{
		{"every day is the same", weeks(4, 4, 4, 4, 4, 4, 4, 4, 4, 4), CostsOf(1, 10), true, 0},
		{"waiting costs nothing to speak of", weeks(4, 4, 4, 4, 4, 4, 4, 4, 4, 4), CostsOf(1, 0.001), false, 0},
		{"half of the days, and waiting is cheap", restless, CostsOf(1, 2), false, 0},
		{"half of the days, and waiting is expensive", restless, CostsOf(1, 1000), true, 0.75},
	} {
		c := test.of.Choose(g, test.costs)
		if c.Pays != test.pays || c.Quantile != test.quantile {
			t.Errorf("%s: pays %v with %v, want %v with %v: %s", test.name, c.Pays, c.Quantile, test.pays, test.quantile,
				c.Why)
		}
		if cost, without := test.costs.Of(c.With), test.costs.Of(c.Without); cost > without {
			t.Errorf("%s: it costs %v, without %v", test.name, cost, without)
		}
	}
}

func TestAChoiceSaysWhatItWouldHaveSaved(t *testing.T) {
	s := weeks(4, 4, 4, 4, 4, 4, 4, 4, 4, 4)
	g := Group{Start: 10 * time.Minute, IdleTimeout: time.Minute}
	c := s.Choose(g, CostsOf(2, 0))
	want := "from 2026-03-05 to 2026-03-12, this would have saved 4.7 of 4.7 hours of waiting for 4.7 more hours of " +
		"workers, where an hour of waiting counts as 10 hours of a worker"
	if c.Why != want {
		t.Errorf("it says %q,\nwant %q", c.Why, want)
	}
	f := s.Keep(monday.AddDate(0, 0, 10).Add(9*time.Hour), g, c)
	if f.Workers != 4 || f.Why != "of the last 7 days from 09:00 to 09:15 UTC, 7 needed at least 4 workers" {
		t.Errorf("it keeps %d: %s", f.Workers, f.Why)
	}
	g.Max = 3
	if f := s.Keep(monday.AddDate(0, 0, 10).Add(9*time.Hour), g, c); f.Workers != 3 {
		t.Errorf("it keeps %d, above the maximum", f.Workers)
	}

	cheap := CostsOf(2, 0.01)
	c = s.Choose(g, cheap)
	want = "from 2026-03-05 to 2026-03-12, workers kept ready would have cost more than the 3.5 hours of waiting that " +
		"they would have saved at most, where an hour of waiting counts as 0.005 hours of a worker"
	if c.Why != want {
		t.Errorf("it says %q,\nwant %q", c.Why, want)
	}
	if f := s.Keep(monday.AddDate(0, 0, 10).Add(9*time.Hour), g, c); f.Workers != 0 || f.Why != want {
		t.Errorf("it keeps %d: %s", f.Workers, f.Why)
	}

	for _, short := range []Series{{}, weeks(4), weeks(4, 4)} {
		c := short.Choose(g, cheap)
		if c.Pays || !c.From.IsZero() || !strings.HasPrefix(c.Why, "the history is too short") {
			t.Errorf("a history of %d slots: %+v", short.Len(), c)
		}
	}
}

func TestALongerIdleTimeoutIsNamedWhereItIsCheaper(t *testing.T) {
	// Work comes for five minutes in every quarter of an hour, at random days.
	s := weeks(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for i := range s.workers {
		if day, hour := i/288, i%288/12; i%3 == 0 && hour >= 9 && hour < 17 && slices.Contains([]int{1, 4, 5, 8}, day) {
			s.workers[i] = 4
		}
	}
	c := s.Choose(Group{Start: 5 * time.Minute, IdleTimeout: time.Minute}, CostsOf(1, 10))
	if c.Timeout != 15*time.Minute || !strings.Contains(c.Why, "; an idle timeout of 15 min alone would have cost less: it saves ") {
		t.Errorf("it names %v: %s", c.Timeout, c.Why)
	}
	c = s.Choose(Group{Start: 5 * time.Minute, IdleTimeout: time.Hour}, CostsOf(1, 10))
	if c.Timeout != 0 || strings.Contains(c.Why, "idle timeout") {
		t.Errorf("of a group with a long timeout, it names %v: %s", c.Timeout, c.Why)
	}
}

func TestCostsThatAreNotKnownAreAssumed(t *testing.T) {
	for _, test := range []struct {
		worker, waiting float64
		want            Costs
	}{
		{3, 7, Costs{Worker: 3, Waiting: 7}},
		{3, 0, Costs{3, 30, true}},
		{0, 7, Costs{1, 10, true}},
		{0, 0, Costs{1, 10, true}},
		{math.NaN(), 7, Costs{1, 10, true}},
	} {
		if got := CostsOf(test.worker, test.waiting); got != test.want {
			t.Errorf("a worker costs %v, waiting %v: %+v, want %+v", test.worker, test.waiting, got, test.want)
		}
	}
}

// BenchmarkChoose chooses for a restless group with a history of four weeks: what an answer about a group costs once an
// hour.
func BenchmarkChoose(b *testing.B) {
	l, _ := drawn(1, int(spanSlots))
	for b.Loop() {
		l.Series().Choose(Group{Start: 5 * time.Minute, IdleTimeout: time.Minute, Max: 100}, CostsOf(1, 10))
	}
}

// BenchmarkObserve adds a decision to the history of a restless group.
func BenchmarkObserve(b *testing.B) {
	var h History
	workers, at := map[string]int{"gpu": 0}, monday
	for b.Loop() {
		at = at.Add(30 * time.Second)
		workers["gpu"] = int(at.Unix()/30) * 7 % 40
		h.Observe(at, workers)
	}
}
