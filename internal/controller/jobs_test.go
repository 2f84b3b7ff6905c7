package controller

import (
	"errors"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/jobs"
)

// TestJobsAreReadOnceInAnInterval has a cycle each second, and readings each minute.
func TestJobsAreReadOnceInAnInterval(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 4)).with(features{jobsEvery: time.Minute}, Config{})
	w.ray.jobs = jobs.Reading{Jobs: []jobs.Job{{Name: "train"}}}
	seconds := func(n int) {
		for range n {
			w.pass(time.Second)
			w.cycle()
		}
	}
	held := func() *jobs.Held {
		d, _ := w.c.Decision(key)
		return d.Jobs
	}
	first := w.ray.jobLooks // of the cycles before there were jobs
	for range 60 {
		if seconds(1); w.ray.jobLooks > first {
			break
		}
	}
	if w.ray.jobLooks != first+1 || held() == nil || held().Only() != "train" {
		t.Fatalf("after %d readings: %+v", w.ray.jobLooks, held())
	}
	seconds(59)
	if w.ray.jobLooks != first+1 {
		t.Errorf("%d readings in a minute", w.ray.jobLooks-first)
	}
	w.ray.jobsErr = errors.New("timeout")
	seconds(1)
	if w.ray.jobLooks != first+2 || held() == nil {
		t.Errorf("after %d readings, of which the last failed: %+v", w.ray.jobLooks, held())
	}
	seconds(120)
	if held() != nil {
		t.Error("a reading of three minutes ago still counts")
	}
}

func TestJobsAreNotReadUnasked(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 4))
	w.ray.jobs = jobs.Reading{Jobs: []jobs.Job{{Name: "train"}}, Actors: []jobs.Actor{{Job: "train", Node: raydemand.NodeID{1}}}}
	w.pass(time.Second)
	w.cycle()
	if d, _ := w.c.Decision(key); w.ray.jobLooks != 0 || d.Jobs != nil {
		t.Errorf("%d readings: %+v", w.ray.jobLooks, d.Jobs)
	}
}
