package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestASeedAlwaysDrawsTheSameFaults(t *testing.T) {
	faults := draw(7, 400, 3)
	if !slices.Equal(faults, draw(7, 400, 3)) || slices.Equal(faults, draw(8, 400, 3)) {
		t.Error("faults do not depend on the seed alone")
	}
	drawn := map[kind]bool{}
	for _, f := range faults {
		drawn[f.Kind] = true
		if f.After < time.Second || f.For < time.Second || f.Member < 0 || f.Member >= 3 {
			t.Errorf("%+v", f)
		}
		if f.Kind == suspend && f.For <= 6*time.Second {
			t.Errorf("%s is shorter than a Lease", f)
		}
	}
	for _, w := range weights {
		if !drawn[w.kind] {
			t.Errorf("%q is never drawn", w.kind)
		}
	}
}

func TestTheEnvironmentIsRead(t *testing.T) {
	t.Setenv("FLEET", "30")
	t.Setenv("MUTANT", "1")
	if s, err := fromEnvironment(); err != nil || s.fleet != 30 || !s.mutant || s.faults != 200 || s.shards != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	for name, value := range map[string]string{"FLEET": "0", "SHARDS": "1", "FAULTS": "many", "SEED": "-1", "MUTANT": "yes"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if _, err := fromEnvironment(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		})
	}
}

func TestQuantilesAreOfSortedTimes(t *testing.T) {
	var times []time.Duration
	for i := range 200 {
		times = append(times, time.Duration(i+1))
	}
	if p50, p99, most := quantile(times, 0.5), quantile(times, 0.99), quantile(times, 1); p50 != 101 || p99 != 199 || most != 200 {
		t.Errorf("%d, %d, %d", p50, p99, most)
	}
}
