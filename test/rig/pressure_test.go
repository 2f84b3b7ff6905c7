package rig

import (
	"testing"
	"time"
)

func TestTimeInWhichTasksWaitForACoreDoesNotCount(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }
	samples := []pressure{{at(0), 100 * time.Second}, {at(10), 100 * time.Second}, {at(20), 108 * time.Second}, {at(21), 109 * time.Second}}
	for _, test := range []struct {
		what     string
		samples  []pressure
		from, to float64
		want     time.Duration
	}{
		{"a quiet machine", samples, 0, 10, 10 * time.Second},
		{"a busy machine", samples, 10, 20, 2 * time.Second},
		{"between samples", samples, 5, 15, 6 * time.Second},
		{"no core at all", samples, 20, 21, 0},
		{"before and after all samples", samples, -5, 30, 26 * time.Second},
		{"a kernel that does not measure", nil, 0, 10, 10 * time.Second},
	} {
		if got := unhindered(test.samples, at(test.from), at(test.to)); got != test.want {
			t.Errorf("%s: from %v s to %v s are %v unhindered, want %v", test.what, test.from, test.to, got, test.want)
		}
	}
}

func TestPressureIsReadFromTheLineOfTasks(t *testing.T) {
	const text = "some avg10=0.95 avg60=1.06 avg300=4.26 total=51056106759\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
	if got, ok := parsePressure(text); !ok || got != 51056106759*time.Microsecond {
		t.Errorf("the total is %v, %v", got, ok)
	}
	if got, ok := parsePressure("full total=7\n"); ok {
		t.Errorf("without a line about some tasks the total is %v", got)
	}
}
