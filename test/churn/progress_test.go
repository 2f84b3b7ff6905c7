package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

func TestProgressSaysHowFarTheRunHasCome(t *testing.T) {
	p := progress{elapsed: 67 * time.Second, total: 5 * time.Minute, done: 41, inFlight: 3, patches: 12, workers: 4}
	if got, want := p.String(), "1:07 of 5:00: 41 pieces of work done, 3 in flight; 12 patches, 4 workers"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.elapsed = 307 * time.Second
	if got, want := p.String(), "5:07, the last work ends: 41 pieces of work done, 3 in flight; 12 patches, 4 workers"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestProgressCountsPatchesAndThePodsThatAreThere(t *testing.T) {
	w := &work{}
	w.begun.Store(5)
	w.released.Store(2)
	facts := []rig.Fact{
		{Stage: rig.GroupPatched, Group: gpuGroup, To: 2}, {Stage: rig.PodCreated, Pod: "a"}, {Stage: rig.PodCreated, Pod: "b"},
		{Stage: rig.GroupPatched, Group: gpuGroup, From: 2, To: 1}, {Stage: rig.PodGone, Pod: "a"},
	}
	want := progress{elapsed: time.Second, total: time.Minute, done: 2, inFlight: 3, patches: 2, workers: 1}
	if got := w.progressOf(facts, time.Second, time.Minute); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestATerminalGetsOneLineEachSecondAndALogOneNowAndThen(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		lines    int // that end
		draws    int
	}{
		"a terminal": {true, 0, 90},
		"a log":      {false, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				ctx, cancel := context.WithCancel(t.Context())
				shown := 0
				ended := reporter{out: &out, terminal: c.terminal}.follow(ctx, func() progress { shown++; return progress{done: int64(shown)} })
				time.Sleep(90*time.Second + time.Millisecond)
				cancel()
				ended.Wait()
				draws := strings.Count(out.String(), "\r\033[K")
				if c.terminal {
					draws-- // the last leaves the line
				}
				if lines := strings.Count(out.String(), "\n"); lines != c.lines || draws != c.draws {
					t.Errorf("%d lines and %d states of a line, want %d and %d", lines, draws, c.lines, c.draws)
				}
			})
		})
	}
}
