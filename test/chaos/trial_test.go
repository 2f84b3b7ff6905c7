package main

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/test/chaos/verdict"
)

// TestReleasedWorkerIsNotJudgedAtRest has the facts of ray-04 in a run in which the release took some milliseconds, and
// the heads were read meanwhile.
func TestReleasedWorkerIsNotJudgedAtRest(t *testing.T) {
	h, err := newHistory(filepath.Join(t.TempDir(), "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	run := &trial{judge: verdict.New(verdict.Bounds{Manager: "heliostat"}), history: h}
	workers := func(busy bool) map[string]verdict.Worker {
		return map[string]verdict.Worker{
			"ray-04-gpu-worker-7hn24": {Group: "gpu", Busy: busy},
			"ray-04-gpu-worker-gnz8p": {Group: "gpu", Busy: busy},
			"ray-04-gpu-worker-kpr88": {Group: "gpu", Busy: busy},
		}
	}
	at := time.Date(2026, 11, 25, 23, 46, 9, 0, time.UTC)
	run.see(verdict.Spec{At: at, Cluster: "ray-04", Writer: "heliostat",
		Groups: []verdict.Group{{Name: "cpu", Max: 4}, {Name: "gpu", Replicas: 3, Max: 4}}})
	run.see(verdict.State{At: at, Cluster: "ray-04", Workers: workers(true)})
	run.see(verdict.Phase{At: at, Name: verdict.Rest})
	release := func() error {
		run.see(verdict.State{At: at.Add(741 * time.Millisecond), Cluster: "ray-04", Workers: workers(false)})
		return nil
	}
	if err := run.leaveRest(release); err != nil {
		t.Fatal(err)
	}
	if got := run.violations(); len(got) > 0 {
		t.Errorf("%v, want none: the work was released at that moment", got)
	}
	run.see(verdict.Phase{At: at.Add(time.Minute), Name: verdict.Rest})
	if got := run.violations(); len(got) != 1 || got[0].Rule != verdict.Superfluous {
		t.Errorf("%v, want that the workers are still there at the next rest", got)
	}
}

func TestARestBeginsAWhileAfterTheLastWork(t *testing.T) {
	for name, c := range map[string]struct{ works, want time.Duration }{
		"no work":                   {0, 45 * time.Second},
		"work that ends early":      {10 * time.Second, 45 * time.Second},
		"work on a busy machine":    {50 * time.Second, 69 * time.Second},
		"work that would never end": {time.Hour, 4 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			run := &trial{program: &program{settings: settings{calm: 45 * time.Second, settles: realSettles}}}
			if err := run.calmDown(t.Context(), func() bool { return time.Since(begun) >= c.works }); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took < c.want || took > c.want+time.Second {
				t.Errorf("%s: the rest begins after %s, want %s", name, took, c.want)
			}
		})
	}
}
