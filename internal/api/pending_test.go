package api

import (
	"errors"
	"testing"

	"heliostat.dev/heliostat/internal/access"
)

func TestPendingAnswersAreLimitedPerCallerAndInTotal(t *testing.T) {
	a := newPending()
	var slower *access.ThrottledError
	var full *problem
	hold := func(caller string, size int) func() {
		t.Helper()
		release, err := a.hold(caller, size)
		if err != nil {
			t.Fatalf("%d bytes of %s: %v", size, caller, err)
		}
		return release
	}
	first := hold("alice", 10<<20)
	if _, err := a.hold("alice", 10<<20); !errors.As(err, &slower) || slower.After <= 0 {
		t.Errorf("20 MiB of one caller: %v", err)
	}
	hold("alice", smallAnswer)
	releases := []func(){first}
	for _, caller := range []string{"b", "c", "d", "e", "f"} {
		releases = append(releases, hold(caller, 10<<20))
	}
	if _, err := a.hold("g", 10<<20); !errors.As(err, &full) || full.Kind != kindUnavailable {
		t.Errorf("70 MiB of all callers: %v", err)
	}
	if used := (&answers{pending: a}).Used(); used != 60./64 {
		t.Errorf("%v of the bytes are in use, want 60 of 64 MiB", used)
	}
	for _, release := range releases {
		release()
	}
	hold("g", 2*maxOfAll)() // no other answer is pending
	if a.bytes != 0 || len(a.byCaller) != 0 {
		t.Errorf("when all are read %d bytes of %v are held", a.bytes, a.byCaller)
	}
}

func TestEncodingReleasesItsSlot(t *testing.T) {
	a := newPending()
	for i, body := range []any{1, func() {}} {
		if _, err := a.encode(body); (err == nil) != (i == 0) || len(a.encoding) != 0 {
			t.Errorf("%T: %v, and %d are being encoded", body, err, len(a.encoding))
		}
	}
}
