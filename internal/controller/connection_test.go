package controller

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAHeadThatIsNotReadyIsReportedWithoutALikelyCause(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.stateErr = fmt.Errorf("calling State: %w", &raydemand.Failure{Happened: "10.0.0.1:6379 ended the connection",
		Advice: "a head with RAY_USE_TLS=1 does so", Detail: "rpc error: code = Unavailable"})
	for ready, want := range map[bool]string{
		true:  "the head does not answer: 10.0.0.1:6379 ended the connection: a head with RAY_USE_TLS=1 does so",
		false: "the head pod is not ready yet: 10.0.0.1:6379 ended the connection",
	} {
		w.kube.cluster.Head.Ready = ready
		w.after(20 * time.Second)
		if d, _ := w.c.Decision(key); d.RayErr != want {
			t.Errorf("ready %v: reported %q, want %q", ready, d.RayErr, want)
		}
		w.after(time.Millisecond) // within the pause before the next try
		if d, _ := w.c.Decision(key); d.RayErr != want {
			t.Errorf("ready %v: while it is left alone reported %q, want %q", ready, d.RayErr, want)
		}
	}
}

func TestAnEndThatIsAskedForIsNoErrorOfTheHeadOrOfAWrite(t *testing.T) {
	for name, hook := range map[string]func(w *world, end func()){
		"while Ray is read": func(w *world, end func()) {
			w.ray.reading = func() { end(); w.ray.stateErr = context.Canceled }
		},
		"while the RayCluster is written": func(w *world, end func()) {
			w.ray.demand.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: 2}}
			w.kube.writing = func() { end(); w.kube.applyErr = context.Canceled }
		},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			w := newWorld(t, Config{Log: slog.New(slog.NewTextHandler(&said, nil))}, gpuGroup("gpu", 1, 0, 4))
			before := w.c.record(key).gcs.Failures
			said.Reset()
			ctx, end := context.WithCancel(t.Context())
			hook(w, end)
			w.now = w.now.Add(time.Second)
			w.c.Cycle(ctx, key)
			d, _ := w.c.Decision(key)
			if ctx.Err() == nil || strings.Contains(said.String(), "cancel") || d.RayErr != "" || d.Err != "" || d.Unwritten != "" || w.kube.emitted(addon.ReasonPatchFailed) > 0 || w.c.record(key).gcs.Failures != before {
				t.Errorf("ended: %v; reported %q and %q, logged %s", ctx.Err(), d.RayErr, d.Err, said.String())
			}
		})
	}
}

func TestAnEndWhileACycleRunsWaitsForItAndBothEnd(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	closed := make(chan struct{})
	w.ray.reading = func() {
		go func() { w.c.Close(); close(closed) }()
		for range 100 { // until Close waits with the lock of all records, if it does, or waits for this cycle
			time.Sleep(time.Millisecond)
			if !w.c.mu.TryLock() {
				return
			}
			w.c.mu.Unlock()
		}
	}
	go w.c.Cycle(t.Context(), key)
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Fatal("Close and the cycle wait for each other")
	}
	if w.ray.closed != 1 {
		t.Errorf("the line to Ray was closed %d times, want once", w.ray.closed)
	}
}
