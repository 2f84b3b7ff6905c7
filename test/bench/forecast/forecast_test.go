package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/forecast"
)

func TestJobsBecomeWorkers(t *testing.T) {
	const jobs = `timestamp,duration,num_gpus,cluster
2026-03-02 00:00:30,90.0,8,a
2026-03-02 00:01:00,60,1,a
2026-03-02 00:05:00,10,4,a
2026-03-02 00:06:00,,4,a
2026-03-02 00:01:00,60,1,b
`
	file := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(file, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readJobs("drawn", file, jobOptions{perWorker: 8, groups: 1, shortest: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	// Each job lasts two minutes at least. The one without a duration never ran.
	want := []trace{{"drawn a", time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), []int32{1, 2, 1, 0, 0, 1}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(trace{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"a,b\n":                                     "want a column of",
		"timestamp,duration\nsoon,1\n":              "line 2: the time is \"soon\"",
		"timestamp,duration\n5,long\n":              "line 2: the duration is \"long\"",
		"timestamp,duration,gpu_num\n5,1,several\n": "line 2: the number of GPUs is \"several\"",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readJobs("x", file, jobOptions{perWorker: 1, groups: 1}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q in it", text, err, want)
		}
	}
}

func TestHoltAndWintersFollowADay(t *testing.T) {
	h := &holtWinters{alpha: 0.1, gamma: 0.3, steps: 2}
	day := func(slot int) float64 { return 10 + 5*math.Sin(2*math.Pi*float64(slot)/season) }
	for slot := range 20 * season {
		h.observe(day(slot))
	}
	for steps := 1; steps <= 2; steps++ {
		if got, want := h.point(steps), day(20*season+steps-1); math.Abs(got-want) > 0.1 {
			t.Errorf("%d slots ahead it expects %v, want %v", steps, got, want)
		}
	}
	if low, high := h.keep(0.01), h.keep(0.99); low < 9 || high > 11 {
		t.Errorf("it keeps %d to %d, want about %v", low, high, day(20*season+1))
	}
}

func TestEqualSeedsGiveEqualTablesInWhichForecastsShortenTheWait(t *testing.T) {
	o := options{seed: 3, group: forecast.Group{Start: 5 * time.Minute, IdleTimeout: time.Minute}, price: 1,
		learn: forecast.Span}
	traces, again := generated(o.seed), generated(o.seed)
	night := replay(traces[1], o)
	text := night.table(o) + curves([]result{night}, o)
	if again := replay(again[1], o); text != again.table(o)+curves([]result{again}, o) {
		t.Error("the tables differ")
	}
	if text == replay(generated(4)[1], o).table(o) {
		t.Error("another seed gives the same table")
	}
	for i, m := range night.methods {
		if waited, none := night.outcomes[i].Waited, night.outcomes[0].Waited; m.name == "weekly 0.75" && waited > none/2 {
			t.Errorf("%s: demand waits %.1f hours, without forecasts %.1f", m.name, waited, none)
		}
	}
}
