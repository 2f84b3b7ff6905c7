package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner"
)

func TestWithoutAnAnswerFromRayNothingUnknownIsReported(t *testing.T) {
	unknown := []planner.Reason{{Code: planner.CodeClosed, Message: "closed: Ray does not answer, so its demand is unknown, and nothing is launched"}}
	for name, restarted := range map[string]bool{"the last account counts": false, "after a restart a ready pod has joined": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
			w.busy(w.pod(0))
			w.after(time.Second)
			w.ray.stateErr = errors.New("unavailable")
			if restarted {
				w.restart(Config{})
			}
			for range 120 {
				d := w.after(time.Second)
				if diff := cmp.Diff(unknown, d.Plan.Groups[0].Reasons); diff != "" {
					t.Fatalf("reasons (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(map[string]string{w.pod(0): "RUNNING", w.pod(1): "RUNNING"}, states(d.Snapshot)); diff != "" {
					t.Fatalf("nodes (-want +got):\n%s", diff)
				}
			}
			w.nothingWritten("nothing is known")
		})
	}
}
