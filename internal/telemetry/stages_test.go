package telemetry

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// walk runs cycles and returns the reported stages, in order.
func walk(cycles ...Cycle) []string {
	var s stages
	var report []string
	for _, c := range cycles {
		s.observe(c, stageHooks{stage: func(stage string, took time.Duration) { report = append(report, stage+" "+took.String()) }})
	}
	return report
}

// at returns a cycle with these pods, this number of seconds after noon.
func at(seconds int, pods ...Pod) Cycle {
	return Cycle{At: noon.Add(time.Duration(seconds) * time.Second), Pods: slices.Values(pods), Moments: unknownMoments}
}

func unknownMoments(string) (created, scheduled time.Time) { return }

// moments returns when every pod is created and scheduled, in seconds after noon; 0 means not yet.
func moments(created, scheduled int) func(string) (time.Time, time.Time) {
	moment := func(seconds int) (at time.Time) {
		if seconds != 0 {
			at = noon.Add(time.Duration(seconds) * time.Second)
		}
		return at
	}
	return func(string) (time.Time, time.Time) { return moment(created), moment(scheduled) }
}

// grew returns a cycle in which the group gpu grew. The growth was first wanted two seconds earlier.
func grew(seconds int) Cycle {
	c := at(seconds)
	c.Actions, c.SeenToPatched = []Action{{At: c.At, Grown: "gpu"}}, 2*time.Second
	return c
}

func with(c Cycle, moments func(string) (time.Time, time.Time)) Cycle {
	c.Moments = moments
	return c
}

func TestEachStageOfAScaleUpIsMeasuredOnce(t *testing.T) {
	coming, alive := Pod{Name: "a", Group: "gpu"}, Pod{Name: "a", Group: "gpu", Alive: true}
	got := walk(grew(10),
		with(at(12, coming), moments(11, 0)),
		with(at(40, coming), moments(11, 31)),
		with(at(50, coming), moments(11, 31)),
		with(at(91, alive), moments(11, 31)),
		with(at(92, alive), moments(11, 31)))
	want := []string{"patched_to_scheduled 21s", "scheduled_to_alive 1m0s", "seen_to_alive 1m23s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func TestAPodThatNobodySeesBetweenItsNodeAndItsLifeHasItsStages(t *testing.T) {
	got := walk(grew(10),
		with(at(12, Pod{Name: "a", Group: "gpu"}), moments(11, 0)),
		with(at(20, Pod{Name: "a", Group: "gpu", Alive: true}), moments(11, 15)))
	want := []string{"patched_to_scheduled 5s", "scheduled_to_alive 5s", "seen_to_alive 12s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func TestPodsThatNoKnownPatchAskedForHaveNoBeginning(t *testing.T) {
	for name, c := range map[string]struct {
		group   string
		created int
	}{
		"a pod of another group":           {"cpu", 11},
		"a pod that was there before":      {"gpu", 5},
		"a pod whose creation is unknown ": {"gpu", 0},
	} {
		got := walk(grew(10),
			with(at(12, Pod{Name: "a", Group: c.group}), moments(c.created, 20)),
			with(at(30, Pod{Name: "a", Group: c.group, Alive: true}), moments(c.created, 20)))
		if diff := cmp.Diff([]string{"scheduled_to_alive 10s"}, got); diff != "" {
			t.Errorf("%s: stages (-want +got):\n%s", name, diff)
		}
	}
}

func TestPodsAliveWhenFirstSeenAndPodsThatGoAreNotMeasured(t *testing.T) {
	alive := Pod{Name: "a", Group: "gpu", Alive: true}
	if got := walk(with(at(10, alive), moments(1, 2)), with(at(11, alive), moments(1, 2))); got != nil {
		t.Errorf("reported %v", got)
	}
	var s stages
	s.observe(with(at(10, Pod{Name: "a"}), moments(1, 0)), stageHooks{stage: func(string, time.Duration) {}})
	s.observe(at(11), stageHooks{})
	if len(s.coming) != 0 {
		t.Errorf("%d pods are still waited for", len(s.coming))
	}
}

func TestAReadingThatFailedForgetsNoPod(t *testing.T) {
	blind := at(20)
	blind.Pods = nil
	got := walk(with(at(12, Pod{Name: "a"}), moments(11, 13)), blind, with(at(30, Pod{Name: "a", Alive: true}), moments(11, 13)))
	if diff := cmp.Diff([]string{"scheduled_to_alive 17s"}, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

// TestAPatchIsForgottenAfterAnHour because groups come and go, and a pod that comes later is not its result.
func TestAPatchIsForgottenAfterAnHour(t *testing.T) {
	var s stages
	hooks := stageHooks{stage: func(stage string, took time.Duration) { t.Errorf("%s takes %s", stage, took) }}
	s.observe(grew(10), hooks)
	s.observe(with(at(3700, Pod{Name: "a", Group: "gpu"}), moments(3650, 0)), hooks)
	if len(s.growth) > 0 {
		t.Errorf("remembered: %v", s.growth)
	}
	s.observe(with(at(3720, Pod{Name: "a", Group: "gpu", Alive: true}), moments(3650, 0)), hooks)
}
