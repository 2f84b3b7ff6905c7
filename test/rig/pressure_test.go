package rig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestAHostThatKeepsACoreHindersTasks(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	before := machine{noon, 10 * time.Second, []time.Duration{time.Second, 2 * time.Second}}
	for _, test := range []struct {
		what string
		now  machine
		want time.Duration
	}{
		{"a quiet machine", machine{noon.Add(sampleEvery), 10 * time.Second, []time.Duration{time.Second, 2 * time.Second}}, 0},
		{"others have the cores", machine{noon.Add(sampleEvery), 10*time.Second + 60*time.Millisecond, before.stolen}, 60 * time.Millisecond},
		{"the host has one", machine{noon.Add(sampleEvery), 10*time.Second + 20*time.Millisecond,
			[]time.Duration{time.Second, 2*time.Second + 90*time.Millisecond}}, 90 * time.Millisecond},
		{"the machine stood still", machine{noon.Add(5 * time.Second), 10 * time.Second, before.stolen}, 5*time.Second - sampleEvery},
		{"a kernel without steal times", machine{noon.Add(sampleEvery), 10 * time.Second, nil}, 0},
	} {
		if got := test.now.hindered(before); got != test.want {
			t.Errorf("%s: hindered for %v, want %v", test.what, got, test.want)
		}
	}
}

func TestStolenTimeIsReadForEachCore(t *testing.T) {
	const text = "cpu  504790 14869 81971 119369 1924 0 2796 8250 0 0\n" +
		"cpu0 251501 6843 38932 64071 361 0 1116 4098 0 0\ncpu1 253289 8026 43039 55297 1563 0 1680 4152 0 0\nintr 1\n"
	if diff := cmp.Diff([]time.Duration{40980 * time.Millisecond, 41520 * time.Millisecond}, parseStolen(text)); diff != "" {
		t.Errorf("stolen (-want +got):\n%s", diff)
	}
	if got := parseStolen("cpu0 1 2 3\n"); got != nil {
		t.Errorf("without that column: %v", got)
	}
}
