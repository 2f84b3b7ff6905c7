package controller

import (
	"testing"
	"time"
)

func TestARestartedGCSOfTheSameSessionIsWatchedBeforeAnythingIsTakenAway(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	w.after(59 * time.Second)
	w.ray.version = 0 // with fault tolerance the session stays, and the count of readings starts again
	w.after(1500 * time.Millisecond)
	if drained := w.ray.drained(); len(drained) != 0 {
		t.Fatalf("drained %v on the first reading of a restarted GCS", drained)
	}
	w.after(newcomerPause)
	if drained := w.ray.drained(); len(drained) != 2 {
		t.Errorf("drained %v after the pause, want both idle workers", drained)
	}
}
