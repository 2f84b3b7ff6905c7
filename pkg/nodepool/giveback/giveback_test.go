package giveback

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAReservationIsReadAsItWasWritten(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := &Reservation{
		Ask:      Ask{GPUs: 8, Group: "h100", DeadlineSeconds: 600, Until: noon.Add(time.Hour), Force: true, Taker: "ml/prod"},
		Deadline: noon, Hold: 24, PodGPUs: map[string]int64{"h100": 8},
		Workers: []Worker{{Pod: "w0", UID: "u0", Group: "h100", GPUs: 8, Why: "idle"}},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, fault := ReadReservation(text)
	if fault != nil {
		t.Fatal(fault)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !got.Has("u0") || got.Has("u1") || got.Over(noon) || !got.Over(noon.Add(time.Hour)) {
		t.Error("the wrong workers, or the wrong end")
	}
	for _, bad := range []string{"", "{}", "yes", `{"gpus": 8}`, strings.Replace(string(text), `"uid":"u0"`, `"uid":""`, 1),
		strings.Replace(string(text), `"hold"`, `"holds"`, 1)} {
		if r, fault := ReadReservation([]byte(bad)); fault == nil {
			t.Errorf("%s is read as %+v", bad, r)
		}
	}
}

func FuzzReadReservation(f *testing.F) {
	f.Add(`{"gpus":8,"group":"h100","deadline":"2026-03-01T12:00:00Z","workers":[{"pod":"w","uid":"u","gpus":8}],"hold":8,"podGPUs":{"h100":8}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if r, fault := ReadReservation([]byte(text)); fault == nil {
			if _, holds := r.Quota(); !holds || r.Deadline.IsZero() || r.GPUs < 0 {
				t.Errorf("%s: %+v", text, r)
			}
		}
	})
}
