package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/test/chaos/schedule"
	"heliostat.dev/heliostat/test/rig"
)

// TestARoundOfChaos runs one round with one fault of each kind. SEED in the environment moves them. It is no part of
// make test-all as long as a run of two hours has violations (docs/benchmarks.md).
func TestARoundOfChaos(t *testing.T) {
	if os.Getenv("CHAOS_ROUND") == "" {
		t.Skip("make nightly NAME=chaos-round runs it")
	}
	s, err := fromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("SEED") == "" {
		s.seed = 1
	}
	rig.Quiet()
	s.duration, s.clusters, s.real, s.replays = time.Second, 8, 0, 0
	s.schedule = schedule.OneOfEach(s.seed, s.clusters, s.storm)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := chaos(ctx, s); err != nil {
		t.Fatal(err)
	}
}

func TestAFailurePrintsAScheduleThatCanBeReplayed(t *testing.T) {
	want := schedule.Draw(7, 3, 5, 8, 30*time.Second)
	text := (&settings{seed: 7, replays: 12}).failure("work waits", 3, 4, want).Error()
	first, rest, _ := strings.Cut(text, "\n")
	if first != "work waits, in round 3 of seed 7; the shortest schedule that still fails, after 4 replays:" {
		t.Errorf("it begins with %q", first)
	}
	file := filepath.Join(t.TempDir(), "schedule")
	if err := os.WriteFile(file, []byte(rest), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SCHEDULE", file)
	s, err := fromEnvironment()
	if err != nil || !slices.Equal(s.schedule, want) {
		t.Errorf("read back: %v, %v", s.schedule, err)
	}
}

func TestAFailureWithoutReplaysPrintsAllFaultsOfItsRound(t *testing.T) {
	text := (&settings{seed: 7}).failure("work waits", 3, 0, nil).Error()
	if text != "work waits, in round 3 of seed 7; all faults of the round:\n" {
		t.Errorf("it prints %q", text)
	}
}

func TestTheEnvironmentIsRead(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"DURATION", "long", "DURATION"}, {"SEED", "-1", "SEED"}, {"CLUSTERS", "1", "want 2 to 200"},
		{"FAULTS", "many", "FAULTS"}, {"SCHEDULE", "/nowhere", "SCHEDULE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if _, err := fromEnvironment(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s=%s: %v, want %q", c.name, c.value, err, c.says)
			}
		})
	}
	t.Setenv("DURATION", "3m")
	t.Setenv("REAL", "2")
	if s, err := fromEnvironment(); err != nil || s.duration != 3*time.Minute || s.real != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}
